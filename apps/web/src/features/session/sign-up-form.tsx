'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { LoadingState } from '../../components/states'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { EntranceForm } from './entrance-form'

/** Asks for a link by mail. What it says is the same whether the address has an account or not. */
export function SignUpForm() {
  const trpc = useTRPC()
  const offer = useQuery(trpc.session.signIn.queryOptions())
  const ask = useMutation(trpc.signUp.ask.mutationOptions())

  async function send({ email = '' }: Record<string, string>) {
    try {
      await ask.mutateAsync({ email })
    } catch (error) {
      return formProblem(error)
    }
    return null
  }

  if (offer.isPending) return <LoadingState label="Looking at what is open">{null}</LoadingState>
  if (offer.error)
    return (
      <p role="alert" className="rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
        {formProblem(offer.error)}
      </p>
    )
  if (!offer.data.isSelfService)
    return (
      <p className="text-ink">
        Nobody can sign up here by themselves. Ask an owner of your organization for an invitation
        {offer.data.contact ? `, or ${offer.data.contact}` : ''}.
      </p>
    )
  if (ask.isSuccess)
    return (
      <p role="status" className="text-ink">
        A mail is on its way to this address. Its link is good for an hour, and makes the account.
      </p>
    )
  return (
    <div className="flex flex-col gap-4">
      <EntranceForm
        fields={[{ label: 'E-mail', name: 'email', type: 'email', autoComplete: 'username' }]}
        action="Send a link"
        working="Sending"
        onSubmit={send}
      />
      <Link href="/sign-in" className="text-ink-soft text-sm underline underline-offset-4">
        Sign in to an account there is
      </Link>
    </div>
  )
}
