import type { Metadata } from 'next'
import { ApiProvider } from '../../../features/session/api-provider'
import { CompleteSignUpForm } from '../../../features/session/complete-sign-up-form'
import { SignInScene } from '../../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Create your account' }

export default async function Page({ params }: { params: Promise<{ token: string }> }) {
  const { token } = await params
  return (
    <SignInScene title="Create your account" text="Choose a name and a password.">
      <ApiProvider>
        <CompleteSignUpForm token={token} />
      </ApiProvider>
    </SignInScene>
  )
}
