'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { formProblem, useTRPC } from '../../lib/trpc'
import { EntranceForm, newPasswordField } from './entrance-form'
import { Offered } from './offered'

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

  return (
    <Offered offer={link} label="Checking the link">
      {() => (
        <EntranceForm
          fields={[
            { label: 'Organization', name: 'organizationName', type: 'text', autoComplete: 'organization' },
            { label: 'Your name', name: 'name', type: 'text', autoComplete: 'name' },
            { label: 'E-mail', name: 'email', type: 'email', autoComplete: 'username' },
            newPasswordField,
          ]}
          action="Create organization"
          working="Creating organization"
          onSubmit={finish}
        />
      )}
    </Offered>
  )
}
