import type { Metadata } from 'next'
import { ForgottenPasswordForm } from '../../features/session/forgotten-password-form'
import { SignInScene } from '../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Forgot password' }

export default function Page() {
  return (
    <SignInScene title="Reset your password" text="We e-mail you a link to set a new password.">
      <ForgottenPasswordForm />
    </SignInScene>
  )
}
