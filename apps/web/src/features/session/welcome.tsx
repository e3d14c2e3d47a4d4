'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Button } from '../../components/button'
import { LoadingState, ProblemNote } from '../../components/page'
import { formProblem, useTRPC } from '../../lib/trpc'
import { askAuth } from './ask-auth'
import { EntranceForm } from './entrance-form'

/** For a signed-in person without an organization, or who wants another one. */
export function Welcome() {
  const trpc = useTRPC()
  const access = useQuery(trpc.session.access.queryOptions())
  const found = useMutation(trpc.organization.found.mutationOptions())

  async function make({ name = '' }: Record<string, string>) {
    try {
      await found.mutateAsync({ name })
    } catch (error) {
      return formProblem(error)
    }
    window.location.assign('/')
    return null
  }

  if (access.isPending) return <LoadingState label="Loading your account">{null}</LoadingState>
  if (access.error) return <ProblemNote>{formProblem(access.error)}</ProblemNote>
  const { email, isSelfService, isPlatformOperator, contact } = access.data
  return (
    <div className="flex flex-col gap-5">
      <p className="text-ink">
        You are signed in as <strong>{email}</strong>.
      </p>
      {isSelfService ? (
        <EntranceForm
          fields={[{ label: 'Organization', name: 'name', type: 'text', autoComplete: 'organization' }]}
          action="Create organization"
          working="Creating organization"
          onSubmit={make}
        />
      ) : (
        <p className="text-ink-soft text-sm">
          You cannot create an organization here. Ask an owner of yours for an invitation
          {contact ? `, or contact ${contact}` : ''}.
        </p>
      )}
      <div className="flex flex-wrap items-center gap-4">
        {isPlatformOperator && (
          <Link href="/platform" className="text-ink-soft text-sm underline underline-offset-4">
            Platform
          </Link>
        )}
        <Button onClick={() => void askAuth('sign-out').then(() => window.location.assign('/sign-in'))}>
          Sign out
        </Button>
      </div>
    </div>
  )
}
