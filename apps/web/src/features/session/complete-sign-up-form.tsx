'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { formProblem, useTRPC } from '../../lib/trpc'
import { EntranceForm, newAccountFields } from './entrance-form'
import { Offered } from './offered'

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

  return (
    <Offered offer={offer} label="Checking the link">
      {({ email }) => (
        <div className="flex flex-col gap-5">
          <p className="text-ink">
            Account for <strong>{email}</strong>
          </p>
          <EntranceForm
            fields={newAccountFields}
            action="Create account"
            working="Creating account"
            onSubmit={finish}
          />
        </div>
      )}
    </Offered>
  )
}
