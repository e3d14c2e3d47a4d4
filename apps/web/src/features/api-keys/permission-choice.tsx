'use client'

import { useQuery } from '@tanstack/react-query'
import { type RouterInputs, useTRPC } from '../../lib/trpc'

type Chosen = RouterInputs['apiKey']['create']['permissions']
type Permission = NonNullable<Chosen>[number]

interface PermissionChoiceProps {
  role: string
  /** Null: all that the role has. */
  chosen: Chosen
  onChange: (chosen: Chosen) => void
}

/** Which of the role's permissions a key has: all of them, or those that are ticked. */
export function PermissionChoice({ role, chosen, onChange }: PermissionChoiceProps) {
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
