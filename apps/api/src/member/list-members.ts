import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { escapeLike } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { type Actor, scopesOf } from '../rules/actor.ts'
import { covers, organizationPlace, type Place } from '../rules/place.ts'
import { findMember, memberSelect, memberViewOf } from './rows.ts'
import { type memberInput, type memberListInput, type memberPage, memberSort, type memberView } from './schema.ts'

/** People whose roles the actor may see; service-accounts.ts lists the accounts of programs. */
export async function listMembers(
  { db, actor }: ServiceContext,
  { search, ...asked }: z.output<typeof memberListInput>,
): Promise<z.infer<typeof memberPage>> {
  const order = listOrder(memberSort, asked)
  const contains = search ? { contains: escapeLike(search), mode: 'insensitive' as const } : null
  const rows = await db.membership.findMany({
    where: {
      organizationId: actor.organizationId,
      AND: [
        visibleMembers(actor),
        { user: { serviceOf: null } },
        contains ? { user: { OR: [{ name: contains }, { email: contains }] } } : {},
        order.where,
      ],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: memberSelect,
  })
  return order.page(rows, (row) => memberViewOf(actor, row))
}

/** Throws `not_found`. */
export async function getMember(
  context: ServiceContext,
  { userId }: z.output<typeof memberInput>,
): Promise<z.infer<typeof memberView>> {
  return memberViewOf(context.actor, await findMember(context, userId))
}

/** Members with a role in the part that the actor may see, also by a role of the farm or the organization. */
export function visibleMembers(actor: Actor): Prisma.MembershipWhereInput {
  const scopes = scopesOf(actor, 'member.read')
  if (scopes.some((scope) => covers(scope, organizationPlace))) return {}
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
