import type { Metadata } from 'next'
import { ApiProvider } from '../../../features/session/api-provider'
import { CompleteSignUpForm } from '../../../features/session/complete-sign-up-form'
import { SignInScene } from '../../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Your account' }

export default async function Page({ params }: { params: Promise<{ token: string }> }) {
  const { token } = await params
  return (
    <SignInScene title="Your account" text="A name and a password, and it is yours.">
      <ApiProvider>
        <CompleteSignUpForm token={token} />
      </ApiProvider>
    </SignInScene>
  )
}
