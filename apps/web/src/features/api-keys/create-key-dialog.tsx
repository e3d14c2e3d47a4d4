'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { formProblem } from '../../lib/readable-error'
import { type RouterInputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { PermissionChoice } from './permission-choice'
import { useGrantedRoles } from './use-granted-roles'

type NewKey = RouterInputs['apiKey']['create']
type Role = NewKey['role']

const dayMs = 86_400_000
const validities = [
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: '1 year' },
  { value: '', label: 'No expiry' },
]

interface CreateKeyDialogProps {
  onCreated: (secret: string) => void
  onClose: () => void
}

/** Name, role, place and permissions of a new key: at most what its creator may. */
export function CreateKeyDialog({ onCreated, onClose }: CreateKeyDialogProps) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const roles = useGrantedRoles()
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [siteId, setSiteId] = useState('')
  const [days, setDays] = useState('90')
  const [chosen, setChosen] = useState<NewKey['permissions']>(null)
  const sites = usePicker('site', {})
  const create = useMutation(
    trpc.apiKey.create.mutationOptions({
      onSuccess: async ({ secret }) => {
        onCreated(secret)
        await queries.invalidateQueries(trpc.apiKey.list.pathFilter())
      },
    }),
  )
  return (
    <FormDialog
      title="Create API key"
      action="Create API key"
      wide
      busy={create.isPending}
      disabled={name.trim() === ''}
      failure={formProblem(create.error)}
      onClose={onClose}
      onSubmit={() =>
        create.mutate({
          name,
          role,
          permissions: chosen,
          siteId: siteId === '' ? null : siteId,
          expiresAt: days === '' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString(),
        })
      }
    >
      <TextField label="Name" value={name} onChange={setName} hint="The script or service that uses the key." />
      <div className="grid gap-3 sm:grid-cols-3">
        <SelectField
          label="Role"
          value={role}
          options={roles.map((one) => ({ value: one, label: one.replace('_', ' ') }))}
          onChange={(value) => {
            setRole(roles.find((one) => one === value) ?? 'viewer')
            setChosen(null)
          }}
        />
        <ObjectPicker
          label="Scope"
          picker={sites}
          value={siteId}
          first={[{ value: '', label: 'Whole organization' }]}
          labelOf={(site) => site.name}
          onChange={setSiteId}
        />
        <SelectField label="Expires after" value={days} options={validities} onChange={setDays} />
      </div>
      <PermissionChoice role={role} chosen={chosen} onChange={setChosen} />
    </FormDialog>
  )
}
