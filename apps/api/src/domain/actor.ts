import { holdsUpwards, meetOf, type Permission, type Role, roleHas } from './permissions.ts'
import { covers, leadsTo, narrower, type Place } from './place.ts'

/** A role, and where it holds. */
export interface Grant {
  role: Role
  scope: Place
}

/** Who calls, in one organization. */
export interface Actor {
  kind: 'person' | 'api_key'
  /** Of the person; of an API key the one who created it, null when that account is gone. */
  userId: string | null
  userName: string
  userEmail: string
  /** Null for a person. */
  apiKeyId: string | null
  organizationId: string
  organizationName: string
  grants: Grant[]
  /** What an API key is limited to, whatever its role has; null for a person. */
  onlyPermissions: ReadonlySet<Permission> | null
}

/** The scopes in which the actor has the permission. */
export function scopesOf(actor: Actor, permission: Permission): Place[] {
  if (actor.onlyPermissions && !actor.onlyPermissions.has(permission)) return []
  return actor.grants.filter(({ role }) => roleHas(role, permission)).map(({ scope }) => scope)
}

/** Whether the actor has the permission at this place. */
export function may(actor: Actor, permission: Permission, place: Place): boolean {
  const upwards = holdsUpwards(permission)
  return scopesOf(actor, permission).some(
    (scope) => covers(scope, place) || (upwards && leadsTo(place, scope)),
  )
}

/** What is left of a grant for somebody who can give no more than `own`. */
export function withinGrants(grant: Grant, own: Grant[]): Grant[] {
  return own.flatMap(({ role, scope }) => {
    const both = narrower(grant.scope, scope)
    return both ? [{ role: meetOf(grant.role, role), scope: both }] : []
  })
}
