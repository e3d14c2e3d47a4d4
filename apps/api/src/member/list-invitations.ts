import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { cutPage, decodeInstantCursor } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { type Actor, scopesOf } from '../rules/actor.ts'
import type { Place } from '../rules/place.ts'
import { invitationSelect, invitationViewOf } from './invitation-rows.ts'
import type { invitationListInput, invitationPage } from './schema.ts'

/** Invitations that wait for an answer, also those that have expired; the newest before the others. */
export async function listInvitations(
  { db, actor, clock }: ServiceContext,
  { cursor, limit }: z.output<typeof invitationListInput>,
): Promise<z.infer<typeof invitationPage>> {
  const after = decodeInstantCursor(cursor)
  const rows = await db.invitation.findMany({
    where: {
      organizationId: actor.organizationId,
      acceptedAt: null,
      revokedAt: null,
      AND: [
        visibleInvitations(actor),
        after ? { OR: [{ createdAt: { lt: after.at } }, { createdAt: after.at, id: { lt: after.id } }] } : {},
      ],
    },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: limit + 1,
    select: invitationSelect,
  })
  return cutPage(rows, limit, {
    item: (row) => invitationViewOf(actor, row, clock()),
    key: (row) => [row.createdAt.toISOString(), row.id],
  })
}

/** To places within those whose members the actor may see. */
function visibleInvitations(actor: Actor): Prisma.InvitationWhereInput {
  const scopes = scopesOf(actor, 'member.read')
  if (scopes.some(({ farmId }) => farmId === null)) return {}
  return { OR: scopes.flatMap(within) }
}

function within({ farmId, siteId, collectionId }: Place): Prisma.InvitationWhereInput[] {
  if (collectionId) return [{ collectionId }]
  if (siteId) return [{ siteId }, { collection: { siteId } }]
  return farmId ? [{ farmId }, { site: { farmId } }, { collection: { site: { farmId } } }] : []
}
