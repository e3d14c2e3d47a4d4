import type { Metadata } from 'next'
import { ApiProvider } from '../../features/session/api-provider'
import { SignInScene } from '../../features/session/sign-in-scene'
import { SignUpForm } from '../../features/session/sign-up-form'

export const metadata: Metadata = { title: 'Sign up' }

export default function Page() {
  return (
    <SignInScene title="Sign up" text="Create an account and your own organization.">
      <ApiProvider>
        <SignUpForm />
      </ApiProvider>
    </SignInScene>
  )
}
