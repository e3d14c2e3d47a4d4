'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { LoadingState } from '../../components/states'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { EntranceForm } from './entrance-form'
import { newPasswordField } from './new-password'

/** The account of an address, by the link that was mailed there. */
export function CompleteSignUpForm({ token }: { token: string }) {
  const trpc = useTRPC()
  const offer = useQuery({ ...trpc.signUp.get.queryOptions({ token }), retry: false })
  const complete = useMutation(trpc.signUp.complete.mutationOptions())

  async function finish({ name = '', password = '' }: Record<string, string>) {
    try {
      await complete.mutateAsync({ token, name, password })
    } catch (error) {
      return formProblem(error)
    }
    window.location.assign('/sign-in')
    return null
  }

  if (offer.isPending) return <LoadingState label="Looking at the link">{null}</LoadingState>
  if (offer.error)
    return (
      <p role="alert" className="rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
        {formProblem(offer.error)}
      </p>
    )
  return (
    <div className="flex flex-col gap-5">
      <p className="text-ink">
        The account of <strong>{offer.data.email}</strong>.
      </p>
      <EntranceForm
        fields={[{ label: 'Your name', name: 'name', type: 'text', autoComplete: 'name' }, newPasswordField]}
        action="Make the account"
        working="Making it"
        onSubmit={finish}
      />
    </div>
  )
}
