import type { Actor, Grant } from '../../domain/actor.ts'
import type { DbOrTransaction, SystemContext } from '../service-context.ts'

interface SignedInUser {
  id: string
  name: string
  email: string
}

/** The user in the organization joined first, with the roles granted there; null where there is no membership. */
export async function findActor({ db }: SystemContext, user: SignedInUser): Promise<Actor | null> {
  const membership = await db.membership.findFirst({
    where: { userId: user.id },
    orderBy: [{ createdAt: 'asc' }, { organizationId: 'asc' }],
    select: { organization: { select: { id: true, name: true } } },
  })
  if (!membership) return null
  const { id: organizationId, name: organizationName } = membership.organization
  return {
    kind: 'person',
    userId: user.id,
    userName: user.name,
    userEmail: user.email,
    apiKeyId: null,
    organizationId,
    organizationName,
    grants: await readGrants(db, { organizationId, userId: user.id }),
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
