import { type AuthenticatedEdge, type DbOrTransaction, ownRow } from '../../context/service-context.ts'
import type { Change } from '../../events/event-bus.ts'
import { recordDoings } from '../../events/record-change.ts'
import type { Place } from '../../rules/place.ts'

type DoingEdge = Pick<AuthenticatedEdge, 'organizationId' | 'edgeId'> & { address?: string | null }

/** Writes the actions of an edge to the audit log. `doings` gets the edge's place; each may name another. */
export async function recordOfEdge(
  { db, now }: { db: DbOrTransaction; now: Date },
  { organizationId, edgeId, address = null }: DoingEdge,
  doings: (place: Place) => (Change & { action: string })[],
): Promise<void> {
  const edge = await db.edge.findUnique({
    where: ownRow({ organizationId }, edgeId),
    select: { name: true, siteId: true, site: { select: { farmId: true } } },
  })
  if (!edge) return
  const place = { farmId: edge.site.farmId, siteId: edge.siteId, collectionId: null }
  const doer = { organizationId, kind: 'edge' as const, id: edgeId, name: edge.name, address }
  await recordDoings(
    { db, now },
    doer,
    doings(place).map((doing) => ({ place, ...doing })),
  )
}
