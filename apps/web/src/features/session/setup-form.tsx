'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { LoadingState } from '../../components/states'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { EntranceForm } from './entrance-form'
import { newPasswordField } from './new-password'

/** The first owner of an installation, by the link that the API printed. */
export function SetupForm({ token }: { token: string }) {
  const trpc = useTRPC()
  const link = useQuery({ ...trpc.setup.get.queryOptions({ token }), retry: false })
  const complete = useMutation(trpc.setup.complete.mutationOptions())

  async function finish(values: Record<string, string>) {
    const { organizationName = '', name = '', email = '', password = '' } = values
    try {
      await complete.mutateAsync({ token, organizationName, name, email, password })
    } catch (error) {
      return formProblem(error)
    }
    window.location.assign('/sign-in')
    return null
  }

  if (link.isPending) return <LoadingState label="Looking at the link">{null}</LoadingState>
  if (link.error)
    return (
      <p role="alert" className="rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
        {formProblem(link.error)}
      </p>
    )
  return (
    <EntranceForm
      fields={[
        { label: 'Organization', name: 'organizationName', type: 'text', autoComplete: 'organization' },
        { label: 'Your name', name: 'name', type: 'text', autoComplete: 'name' },
        { label: 'E-mail', name: 'email', type: 'email', autoComplete: 'username' },
        newPasswordField,
      ]}
      action="Begin"
      working="Setting up"
      onSubmit={finish}
    />
  )
}
