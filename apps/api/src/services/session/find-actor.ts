import type { Actor, Grant } from '../../domain/actor.ts'
import type { DbOrTransaction, PlatformContext } from '../service-context.ts'

interface SignedInUser {
  id: string
  name: string
  email: string
}

interface MembershipRow {
  organization_id: string
  organization_name: string
  grants: Grant[]
}

/**
 * The user in the organization that the session works in, else the one that was chosen last, else the one joined first, with the roles
 * granted there; null where there is no membership.
 */
export async function findActor(
  { db }: PlatformContext,
  user: SignedInUser,
  sessionId: string,
): Promise<Actor | null> {
  const [membership] = await db.$queryRaw<MembershipRow[]>`
    select organization_id::text, organization_name, grants_of(${user.id}::uuid, organization_id) as grants
    from memberships_of(${user.id}::uuid) with ordinality as own (organization_id, slug, organization_name, place)
    order by organization_id is not distinct from
      (select active_organization_id from session where id = ${sessionId}::uuid) desc,
      organization_id is not distinct from
      (select last_organization_id from "user" where id = ${user.id}::uuid) desc, place
    limit 1`
  if (!membership) return null
  return {
    kind: 'person',
    userId: user.id,
    userName: user.name,
    userEmail: user.email,
    apiKeyId: null,
    organizationId: membership.organization_id,
    organizationName: membership.organization_name,
    grants: membership.grants,
    onlyPermissions: null,
  }
}

/** The member's roles, each with where it holds. */
export async function readGrants(
  db: DbOrTransaction,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<Grant[]> {
  const [row] = await db.$queryRaw<{ grants: Grant[] }[]>`
    select grants_of(${userId}::uuid, ${organizationId}::uuid) as grants`
  return row?.grants ?? []
}
