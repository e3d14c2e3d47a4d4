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
      return `Your password was changed, but your other sessions are still signed in: ${formProblem(failure)}`
    }
    await queries.invalidateQueries(trpc.session.own.pathFilter())
    toast({ title: 'Password changed' })
    return null
  }

  return (
    <Panel title="Password">
      <AccountForm action="Change password" disabled={current === '' || next === ''} onSubmit={change}>
        <div className="grid gap-4 sm:grid-cols-2">
          <PasswordField
            label="Current password"
            value={current}
            onChange={setCurrent}
            autoComplete="current-password"
          />
          <PasswordField label="New password" value={next} onChange={setNext} autoComplete="new-password" hint={rule} />
        </div>
        <label className="flex items-center gap-2 text-ink text-sm">
          <input type="checkbox" checked={endsOthers} onChange={(event) => setEndsOthers(event.target.checked)} /> Sign
          out of all other sessions
        </label>
      </AccountForm>
    </Panel>
  )
}

/** Which of the two passwords the answer is about. */
function refusalOf(error: { code?: string } | { status: number } | null, rule: string | undefined): string {
  const code = error && 'code' in error ? error.code : undefined
  if (code === 'INVALID_PASSWORD') return 'The current password is incorrect.'
  return `The new password is not accepted. ${rule ?? ''}`.trim()
}
