import type { Metadata } from 'next'
import { ApiProvider } from '../../../features/session/api-provider'
import { InvitationForm } from '../../../features/session/invitation-form'
import { SignInScene } from '../../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'You are invited' }

export default async function Page({ params }: { params: Promise<{ token: string }> }) {
  const { token } = await params
  return (
    <SignInScene title="You are invited" text="To an organization on this Bootfarm.">
      <ApiProvider>
        <InvitationForm token={token} />
      </ApiProvider>
    </SignInScene>
  )
}
