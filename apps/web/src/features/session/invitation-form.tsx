'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { formProblem, useTRPC } from '../../lib/trpc'
import { EntranceForm, newAccountFields } from './entrance-form'
import { Offered } from './offered'
import { signInPath } from './sign-in-path'

type Offer = RouterOutputs['invitation']['offer']

/** An invitation, accepted by its address alone: with the account there is, or with a new one. */
export function InvitationForm({ token }: { token: string }) {
  const trpc = useTRPC()
  const offer = useQuery({ ...trpc.invitation.offer.queryOptions({ token }), retry: false })
  const accept = useMutation(trpc.invitation.accept.mutationOptions())

  async function finish({ name, password }: Record<string, string>) {
    const account = name && password ? { account: { name, password } } : {}
    try {
      await accept.mutateAsync({ token, ...account })
    } catch (error) {
      return formProblem(error)
    }
    window.location.assign(account.account ? '/sign-in' : '/')
    return null
  }

  return (
    <Offered offer={offer} label="Checking the invitation">
      {(offered) => (
        <div className="flex flex-col gap-5">
          <OfferWords offer={offered} />
          {offered.hasAccount && offered.signedInEmail !== offered.email ? (
            <SignInFirst offer={offered} token={token} />
          ) : (
            <EntranceForm
              fields={offered.hasAccount ? [] : newAccountFields}
              action="Accept invitation"
              working="Accepting"
              onSubmit={finish}
            />
          )}
        </div>
      )}
    </Offered>
  )
}

function OfferWords({ offer }: { offer: Offer }) {
  const { invitedByName, organizationName, role, scope, email } = offer
  return (
    <p className="text-ink">
      {invitedByName} invites <strong>{email}</strong> to join {organizationName} with the role {role.replace('_', ' ')}
      {scope.kind === 'organization' ? '' : ` for the ${scope.kind} ${scope.name}`}.
    </p>
  )
}

function SignInFirst({ offer, token }: { offer: Offer; token: string }) {
  return (
    <p className="text-ink">
      An account with this address already exists.{' '}
      {offer.signedInEmail ? (
        <>You are signed in as {offer.signedInEmail}. Sign out, then open this link again.</>
      ) : (
        <Link href={signInPath(`/invitation/${token}`)} className="underline underline-offset-4">
          Sign in to accept
        </Link>
      )}
    </p>
  )
}
