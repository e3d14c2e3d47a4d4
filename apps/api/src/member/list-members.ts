import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { cutPage, decodeInstantCursor, escapeLike } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { type Actor, scopesOf } from '../rules/actor.ts'
import type { Place } from '../rules/place.ts'
import { findMember, memberSelect, memberViewOf } from './rows.ts'
import type { memberInput, memberListInput, memberPage, memberView } from './schema.ts'

/** Members whose roles the actor may see, who joined first before the others. */
export async function listMembers(
  { db, actor }: ServiceContext,
  { cursor, limit, search }: z.output<typeof memberListInput>,
): Promise<z.infer<typeof memberPage>> {
  const after = decodeInstantCursor(cursor)
  const contains = search ? { contains: escapeLike(search), mode: 'insensitive' as const } : null
  const rows = await db.membership.findMany({
    where: {
      organizationId: actor.organizationId,
      AND: [
        visibleMembers(actor),
        contains ? { user: { OR: [{ name: contains }, { email: contains }] } } : {},
        after ? { OR: [{ createdAt: { gt: after.at } }, { createdAt: after.at, userId: { gt: after.id } }] } : {},
      ],
    },
    orderBy: [{ createdAt: 'asc' }, { userId: 'asc' }],
    take: limit + 1,
    select: memberSelect,
  })
  return cutPage(rows, limit, {
    item: (row) => memberViewOf(actor, row),
    key: (row) => [row.createdAt.toISOString(), row.userId],
  })
}

/** Throws `not_found`. */
export async function getMember(
  context: ServiceContext,
  { userId }: z.output<typeof memberInput>,
): Promise<z.infer<typeof memberView>> {
  return memberViewOf(context.actor, await findMember(context, userId))
}

/** Members with a role in the part that the actor may see, also by a role of the farm or the organization. */
function visibleMembers(actor: Actor): Prisma.MembershipWhereInput {
  const scopes = scopesOf(actor, 'member.read')
  if (scopes.some(({ farmId }) => farmId === null)) return {}
  return { grants: { some: { OR: scopes.flatMap(grantsAround) } } }
}

/** Grants that hold in the whole of this place, or in a part of it. */
function grantsAround({ farmId, siteId, collectionId }: Place): Prisma.RoleGrantWhereInput[] {
  const above = [
    { farmId: null, siteId: null, collectionId: null },
    { farmId },
    ...(siteId ? [{ siteId }] : []),
    ...(collectionId ? [{ collectionId }] : []),
  ]
  if (collectionId) return above
  if (siteId) return [...above, { collection: { siteId } }]
  if (!farmId) return above
  return [...above, { site: { farmId } }, { collection: { site: { farmId } } }]
}
