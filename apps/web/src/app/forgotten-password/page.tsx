import type { Metadata } from 'next'
import { ForgottenPasswordForm } from '../../features/session/forgotten-password-form'
import { SignInScene } from '../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Forgotten password' }

export default function Page() {
  return (
    <SignInScene title="Forgotten your password?" text="A link to set a new one comes by mail.">
      <ForgottenPasswordForm />
    </SignInScene>
  )
}
