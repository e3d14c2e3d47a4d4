import type { Metadata } from 'next'
import { ApiProvider } from '../../../features/session/api-provider'
import { InvitationForm } from '../../../features/session/invitation-form'
import { SignInScene } from '../../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Invitation' }

export default async function Page({ params }: { params: Promise<{ token: string }> }) {
  const { token } = await params
  return (
    <SignInScene title="You have been invited" text="Join an organization on this Bootfarm installation.">
      <ApiProvider>
        <InvitationForm token={token} />
      </ApiProvider>
    </SignInScene>
  )
}
