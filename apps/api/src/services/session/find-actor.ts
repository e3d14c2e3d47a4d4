import { inOrganization } from '@bootfarm/db'
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
}

/** The user in the organization joined first, with the roles granted there; null where there is no membership. */
export async function findActor({ db }: PlatformContext, user: SignedInUser): Promise<Actor | null> {
  const [membership] = await db.$queryRaw<MembershipRow[]>`
    select organization_id::text, organization_name from memberships_of(${user.id}::uuid) limit 1`
  if (!membership) return null
  const { organization_id: organizationId, organization_name: organizationName } = membership
  return {
    kind: 'person',
    userId: user.id,
    userName: user.name,
    userEmail: user.email,
    apiKeyId: null,
    organizationId,
    organizationName,
    grants: await inOrganization(db, organizationId, (transaction) =>
      readGrants(transaction, { organizationId, userId: user.id }),
    ),
    onlyPermissions: null,
  }
}

/** The member's roles, each with where it holds. */
export async function readGrants(
  db: DbOrTransaction,
  where: { organizationId: string; userId: string },
): Promise<Grant[]> {
  const rows = await db.roleGrant.findMany({
    where,
    orderBy: { id: 'asc' },
    select: {
      role: true,
      farmId: true,
      siteId: true,
      collectionId: true,
      site: { select: { farmId: true } },
      collection: { select: { siteId: true, site: { select: { farmId: true } } } },
    },
  })
  return rows.map(({ role, farmId, siteId, collectionId, site, collection }) => ({
    role,
    scope: {
      farmId: farmId ?? site?.farmId ?? collection?.site.farmId ?? null,
      siteId: siteId ?? collection?.siteId ?? null,
      collectionId,
    },
  }))
}
