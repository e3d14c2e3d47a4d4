import type { Metadata } from 'next'
import { redirect } from 'next/navigation'
import { readSession, readSignInOffer } from '../../features/session/read-session'
import { SignInForm } from '../../features/session/sign-in-form'
import { pathAfterSignIn } from '../../features/session/sign-in-path'
import { SignInScene } from '../../features/session/sign-in-scene'

export const metadata: Metadata = { title: 'Sign in' }

export default async function SignInPage({
  searchParams,
}: {
  searchParams: Promise<{ next?: string | string[]; error?: string | string[] }>
}) {
  const { next, error } = await searchParams
  const path = typeof next === 'string' ? next : undefined
  const { kind } = await readSession()
  if (kind === 'signed-in' || kind === 'no-organization') redirect(pathAfterSignIn(path))
  return (
    <SignInScene title="Sign in to Bootfarm" text="Boot diskless machines and see where each boot spends its time.">
      <SignInForm
        next={path}
        offer={await readSignInOffer()}
        providerError={typeof error === 'string' ? error : undefined}
      />
    </SignInScene>
  )
}
