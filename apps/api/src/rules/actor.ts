import { holdsUpwards, meetOf, type Permission, permissionsOf, type Role, roleHas } from './permissions.ts'
import { covers, leadsTo, narrower, organizationPlace, type Place } from './place.ts'

/** A role, and where it holds. */
export interface Grant {
  role: Role
  scope: Place
}

/** The caller, in one organization. */
export interface Actor {
  /** A service account acts by its keys, and is named itself; a person's key is named by its own name. */
  kind: 'person' | 'api_key' | 'service_account'
  /** The person's or the service account's id; for a person's API key that person's. */
  userId: string | null
  userName: string
  userEmail: string
  /** Null for a person. */
  apiKeyId: string | null
  organizationId: string
  organizationName: string
  grants: Grant[]
  /** The limits of an API key, regardless of its role; null for a person. */
  onlyPermissions: ReadonlySet<Permission> | null
}

/** The id of the actor in logs. */
export function actorIdOf({ kind, apiKeyId, userId }: Pick<Actor, 'kind' | 'apiKeyId' | 'userId'>): string | null {
  return kind === 'api_key' ? apiKeyId : userId
}

/** What decides whether something is permitted. */
type Rights = Pick<Actor, 'grants' | 'onlyPermissions'>

/** For actions before the first role exists: set up, accept, create an organization. */
export function newMemberActor(
  person: { userId: string; name: string; email: string },
  organization: { id: string; name: string },
): Actor {
  return {
    kind: 'person',
    userId: person.userId,
    userName: person.name,
    userEmail: person.email,
    apiKeyId: null,
    organizationId: organization.id,
    organizationName: organization.name,
    grants: [],
    onlyPermissions: null,
  }
}

export function scopesOf(actor: Rights, permission: Permission): Place[] {
  if (actor.onlyPermissions && !actor.onlyPermissions.has(permission)) return []
  return actor.grants.filter(({ role }) => roleHas(role, permission)).map(({ scope }) => scope)
}

export function may(actor: Rights, permission: Permission, place: Place): boolean {
  return grantsFor(actor, permission, place).length > 0
}

export function grantsFor(actor: Rights, permission: Permission, place: Place): Grant[] {
  if (actor.onlyPermissions && !actor.onlyPermissions.has(permission)) return []
  const upwards = holdsUpwards(permission)
  return actor.grants.filter(
    ({ role, scope }) => roleHas(role, permission) && (covers(scope, place) || (upwards && leadsTo(place, scope))),
  )
}

/** Returns the part of a grant that somebody with no more than `own` can give. */
export function withinGrants(grant: Grant, own: Grant[]): Grant[] {
  return own.flatMap(({ role, scope }) => {
    const both = narrower(grant.scope, scope)
    return both ? [{ role: meetOf(grant.role, role), scope: both }] : []
  })
}

/**
 * Returns whether the actor may grant this role there, or remove it: only permissions that they have themselves, and
 * owners have the whole organization.
 */
export function mayGrant(actor: Rights, role: Role, scope: Place): boolean {
  if (role === 'owner' && !isWhole(scope)) return false
  return may(actor, 'member.change', scope) && permissionsOf(role).every((permission) => may(actor, permission, scope))
}

function isWhole(scope: Place): boolean {
  return covers(scope, organizationPlace)
}
