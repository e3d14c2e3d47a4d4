'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { formProblem, type RouterInputs, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'

type NewKey = RouterInputs['apiKey']['create']

const dayMs = 86_400_000
const validities = [
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: '1 year' },
  { value: '', label: 'No expiry' },
]

interface CreateKeyDialogProps {
  /** The service account that owns the key, and the role to offer first; without it the viewer owns the key. */
  owner?: { serviceAccountId: string; role: Role | undefined }
  onCreated: (secret: string) => void
  onClose: () => void
}

/** Name, role, place and permissions of a new key: at most what its creator may. */
export function CreateKeyDialog({ owner, onCreated, onClose }: CreateKeyDialogProps) {
  const roles = useGrantedRoles()
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>(owner?.role ?? 'viewer')
  const [siteId, setSiteId] = useState('')
  const [days, setDays] = useState('90')
  const [chosen, setChosen] = useState<NewKey['permissions']>(null)
  const sites = usePicker('site', {})
  const create = useCreateKey(onCreated)
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
          siteId: siteId || null,
          expiresAt: expiryOf(days),
          serviceAccountId: owner?.serviceAccountId ?? null,
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

function useCreateKey(onCreated: (secret: string) => void) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  return useMutation(
    trpc.apiKey.create.mutationOptions({
      onSuccess: async ({ secret }) => {
        onCreated(secret)
        await queries.invalidateQueries(trpc.apiKey.list.pathFilter())
        await queries.invalidateQueries(trpc.serviceAccount.pathFilter())
      },
    }),
  )
}

type Chosen = RouterInputs['apiKey']['create']['permissions']
type Permission = NonNullable<Chosen>[number]

interface PermissionChoiceProps {
  role: string
  /** Null: all that the role has. */
  chosen: Chosen
  onChange: (chosen: Chosen) => void
}

/** Which of the role's permissions a key has: all of them, or those that are ticked. */
function PermissionChoice({ role, chosen, onChange }: PermissionChoiceProps) {
  const { data } = useQuery(useTRPC().apiKey.roles.queryOptions())
  const offered = data?.roles.find((one) => one.role === role)?.permissions ?? []
  const toggle = (permission: Permission) => {
    const now = chosen ?? []
    const next = now.includes(permission) ? now.filter((one) => one !== permission) : [...now, permission]
    onChange(next.length === 0 ? null : next)
  }
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 font-medium text-ink-soft text-xs">
        Permissions: {chosen ? `${chosen.length} of the role’s ${offered.length}` : 'all of the role’s permissions'}
      </legend>
      <div className="grid max-h-52 gap-x-4 gap-y-1 overflow-y-auto rounded-md border border-line p-2 sm:grid-cols-2">
        {offered.map(({ permission, allows }) => (
          <label key={permission} className="flex items-start gap-2 py-0.5 text-sm max-md:py-1.5" title={allows}>
            <input
              type="checkbox"
              checked={chosen?.includes(permission) ?? false}
              onChange={() => toggle(permission)}
              className="mt-1"
            />
            <span className="min-w-0">
              <span className="block font-mono text-ink text-xs">{permission}</span>
              <span className="block text-ink-soft text-xs">{allows}</span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

type Role = RouterInputs['apiKey']['create']['role']
type Grant = RouterOutputs['session']['me']['grants'][number]

/** From the role's full permissions down to the smallest set. */
const order: Role[] = ['owner', 'admin', 'operator', 'image_manager', 'auditor', 'viewer']

function isOfOrganization(grant: Grant): boolean {
  return grant.farmId === null && grant.siteId === null && grant.collectionId === null
}

/** The roles that the signed-in person can give a key; the API refuses what is beyond them. */
function useGrantedRoles(): Role[] {
  const { data } = useQuery(useTRPC().session.me.queryOptions())
  const own = data?.grants.filter(isOfOrganization).map(({ role }) => role) ?? []
  return own.includes('owner') ? order : order.filter((role) => role !== 'owner')
}

function expiryOf(days: string): string | null {
  return days === '' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString()
}
