import type { Metadata } from 'next'
import { ApiProvider } from '../../features/session/api-provider'
import { GoToSignIn } from '../../features/session/go-to-sign-in'
import { readSession } from '../../features/session/read-session'
import { SignInScene } from '../../features/session/sign-in-scene'
import { Welcome } from '../../features/session/welcome'

export const metadata: Metadata = { title: 'Create an organization' }

export default async function Page() {
  if ((await readSession()).kind === 'signed-out') return <GoToSignIn />
  return (
    <SignInScene title="Create an organization" text="Sites, vDisks and devices belong to an organization.">
      <ApiProvider>
        <Welcome />
      </ApiProvider>
    </SignInScene>
  )
}
