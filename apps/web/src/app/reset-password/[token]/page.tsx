import type { Metadata } from 'next'
import { ApiProvider } from '../../../features/session/api-provider'
import { ResetPasswordForm } from '../../../features/session/reset-password-form'
import { SignInScene } from '../../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Set a new password' }

export default async function Page({ params }: { params: Promise<{ token: string }> }) {
  const { token } = await params
  return (
    <SignInScene title="Set a new password" text="This signs you out of all other sessions.">
      <ApiProvider>
        <ResetPasswordForm token={token} />
      </ApiProvider>
    </SignInScene>
  )
}
