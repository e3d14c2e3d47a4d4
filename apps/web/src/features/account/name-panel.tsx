'use client'

import { useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { TextField } from '../../components/field'
import { Facts, Panel } from '../../components/panel'
import { useToast } from '../../components/toast'
import { authClient, authProblem, unreachable } from '../session/auth-client'
import type { Account } from './account'
import { AccountForm } from './account-form'

const nameLengthMax = 80

export function NamePanel({ account }: { account: Account }) {
  const queries = useQueryClient()
  const router = useRouter()
  const toast = useToast()
  const [name, setName] = useState(account.name)
  async function save() {
    const { error } = await authClient.updateUser({ name: name.trim() }).catch(unreachable)
    const problem = authProblem(error, 'Enter a name of up to 80 characters on one line.')
    if (problem) return problem
    toast({ title: 'Name updated' })
    await queries.invalidateQueries()
    // The shell shows it, too.
    router.refresh()
    return null
  }
  return (
    <Panel title="Profile">
      <div className="flex flex-col gap-4">
        <Facts facts={[{ label: 'E-mail', value: account.email }]} />
        <AccountForm action="Save name" disabled={name.trim() === '' || name.trim() === account.name} onSubmit={save}>
          <TextField label="Name" value={name} onChange={setName} maxLength={nameLengthMax} />
        </AccountForm>
      </div>
    </Panel>
  )
}
