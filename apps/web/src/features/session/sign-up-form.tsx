'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { formProblem, useTRPC } from '../../lib/trpc'
import { MailedLinkForm } from './mailed-link-form'
import { Offered } from './offered'

/** Requests the link that creates an account, if people may sign up. */
export function SignUpForm() {
  const trpc = useTRPC()
  const offer = useQuery(trpc.session.signIn.queryOptions())
  const ask = useMutation(trpc.signUp.ask.mutationOptions())
  return (
    <Offered offer={offer} label="Loading sign-up">
      {({ isSelfService, contact }) =>
        isSelfService ? (
          <MailedLinkForm
            ask={(email) => ask.mutateAsync({ email }).then(() => null, formProblem)}
            asked="We have sent a link to this address. It is valid for one hour and creates your account."
            back="Sign in to an existing account"
          />
        ) : (
          <div className="flex flex-col gap-4">
            <p className="text-ink">
              Sign-up is closed. Ask an owner of your organization for an invitation
              {contact ? `, or contact ${contact}` : ''}.
            </p>
            <Link href="/sign-in" className="text-ink-soft text-sm underline underline-offset-4">
              Back to sign-in
            </Link>
          </div>
        )
      }
    </Offered>
  )
}
