import type { Metadata } from 'next'
import { ApiProvider } from '../../features/session/api-provider'
import { GoToSignIn } from '../../features/session/go-to-sign-in'
import { readSession } from '../../features/session/read-session'
import { SignInScene } from '../../features/session/sign-in-scene'
import { Welcome } from '../../features/session/welcome'

export const metadata: Metadata = { title: 'A new organization' }

export default async function Page() {
  if ((await readSession()).kind === 'signed-out') return <GoToSignIn />
  return (
    <SignInScene title="A new organization" text="Everything that you make belongs to one.">
      <ApiProvider>
        <Welcome />
      </ApiProvider>
    </SignInScene>
  )
}
