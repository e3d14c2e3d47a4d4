'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Panel } from '../../components/panel'
import { useToast } from '../../components/toast'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { authClient, authProblem, unreachable } from '../session/auth-client'
import { AccountForm } from './account-form'
import { PasswordField } from './password-field'

export function PasswordPanel() {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const rule = useQuery(trpc.session.signIn.queryOptions()).data?.passwordRule
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [endsOthers, setEndsOthers] = useState(true)
  const endOthers = useMutation(trpc.session.endOthers.mutationOptions())

  async function change() {
    const { error } = await authClient
      .changePassword({ currentPassword: current, newPassword: next })
      .catch(unreachable)
    const problem = authProblem(error, refusalOf(error, rule))
    if (problem) return problem
    setCurrent('')
    setNext('')
    try {
      if (endsOthers) await endOthers.mutateAsync()
    } catch (failure) {
      return `The password is changed, but you are still signed in elsewhere: ${formProblem(failure)}`
    }
    await queries.invalidateQueries(trpc.session.own.pathFilter())
    toast({ title: 'Your password is changed' })
    return null
  }

  return (
    <Panel title="Password">
      <AccountForm action="Change the password" disabled={current === '' || next === ''} onSubmit={change}>
        <div className="grid gap-4 sm:grid-cols-2">
          <PasswordField
            label="Password until now"
            value={current}
            onChange={setCurrent}
            autoComplete="current-password"
          />
          <PasswordField label="New password" value={next} onChange={setNext} autoComplete="new-password" hint={rule} />
        </div>
        <label className="flex items-center gap-2 text-ink text-sm">
          <input type="checkbox" checked={endsOthers} onChange={(event) => setEndsOthers(event.target.checked)} />
          Sign out everywhere else
        </label>
      </AccountForm>
    </Panel>
  )
}

/** Which of the two passwords the answer is about. */
function refusalOf(error: { code?: string } | { status: number } | null, rule: string | undefined): string {
  const code = error && 'code' in error ? error.code : undefined
  if (code === 'INVALID_PASSWORD') return 'The password until now is not right.'
  return `The new password does not do. ${rule ?? ''}`.trim()
}
