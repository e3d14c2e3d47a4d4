import type { Metadata } from 'next'
import { ApiProvider } from '../../../features/session/api-provider'
import { SetupForm } from '../../../features/session/setup-form'
import { SignInScene } from '../../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Set up Bootfarm' }

export default async function Page({ params }: { params: Promise<{ token: string }> }) {
  const { token } = await params
  return (
    <SignInScene title="Set up Bootfarm" text="Create the first organization and its owner account.">
      <ApiProvider>
        <SetupForm token={token} />
      </ApiProvider>
    </SignInScene>
  )
}
