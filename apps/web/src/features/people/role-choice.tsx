'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField } from '../../components/field'
import { Icon } from '../../components/icon'
import { type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { type Role, roleText, type Scope, scopeKey, scopeText } from './role-text'

type Place = RouterOutputs['member']['grantable'][number]

interface ChosenRole {
  role: Role
  scope: Scope
}

/** Roles that the viewer may give, and where: the least of them first. */
export function useRoleChoice({ withOwner = true } = {}) {
  const grantable = useQuery(useTRPC().member.grantable.queryOptions())
  const [key, setKey] = useState<string | null>(null)
  const [wanted, setWanted] = useState<Role | null>(null)
  const offered = grantable.data ?? []
  const places = withOwner
    ? offered
    : offered.map((one) => ({ ...one, roles: one.roles.filter((role) => role !== 'owner') }))
  const place = places.find(({ scope }) => scopeKey(scope) === key) ?? places[0]
  const role = place && (place.roles.find((one) => one === wanted) ?? place.roles.at(-1))
  const chosen: ChosenRole | null = place && role ? { role, scope: place.scope } : null
  return { places, place, chosen, error: grantable.error, setKey, setWanted }
}

export function RoleChoice({ choice }: { choice: ReturnType<typeof useRoleChoice> }) {
  const { places, place, chosen, error, setKey, setWanted } = choice
  if (error) return <p role="alert">{readableError(error)}</p>
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <SelectField
        label="Scope"
        value={place ? scopeKey(place.scope) : ''}
        options={places.map(optionOf)}
        onChange={setKey}
        hint="The role applies to everything in this scope."
      />
      <SelectField
        label="Role"
        value={chosen?.role ?? ''}
        options={(place?.roles ?? []).map((one) => ({ value: one, label: roleText(one) }))}
        onChange={(value) => setWanted(place?.roles.find((one) => one === value) ?? null)}
        hint="You can only grant permissions that you have there yourself."
      />
    </div>
  )
}

function optionOf({ scope }: Place) {
  const words = scopeText(scope).replace(/^the /, '')
  return { value: scopeKey(scope), label: words[0]?.toUpperCase() + words.slice(1) }
}

/** A tick or a dash in a table, with a word for who does not see it. */
export function YesOrNo({ isYes }: { isYes: boolean }) {
  return isYes ? (
    <span className="text-ready">
      <Icon name="check" />
      <span className="sr-only">yes</span>
    </span>
  ) : (
    <span className="text-ink-faint">
      <span aria-hidden="true">–</span>
      <span className="sr-only">no</span>
    </span>
  )
}
