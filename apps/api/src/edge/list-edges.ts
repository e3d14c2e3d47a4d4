import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleEdges } from '../access/visible.ts'
import { inEachOrganization } from '../context/for-each-organization.ts'
import { nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import type { PlatformContext, ServiceContext } from '../context/service-context.ts'
import { emit, type SilentEdge } from '../events/event-bus.ts'
import { edgeSummaryOf, edgeSummarySelect, onlineEdgeFilter } from './rows.ts'
import { type edgeListInput, type edgePage, edgeSort } from './schema.ts'

type Input = z.output<typeof edgeListInput>

export async function listEdges({ db, clock, actor }: ServiceContext, input: Input): Promise<z.infer<typeof edgePage>> {
  const now = clock()
  const order = listOrder(edgeSort, input)
  const rows = await db.edge.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.farmId ? { site: { farmId: input.farmId } } : {}),
      ...(input.siteId ? { siteId: input.siteId } : {}),
      ...nameContains(input.search),
      AND: [visibleEdges(actor), order.where, stateFilter(input.state, now)],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: edgeSummarySelect,
  })
  return order.page(rows, (row) => edgeSummaryOf(row, now))
}

function stateFilter(state: Input['state'], now: Date): Prisma.EdgeWhereInput {
  if (state === undefined) return {}
  if (state === 'revoked') return { revokedAt: { not: null } }
  if (state === 'online') return onlineEdgeFilter(now)
  // An edge without any heartbeat is offline, too: NOT would leave it out.
  return { revokedAt: null, OR: [{ heartbeatAt: null }, { NOT: onlineEdgeFilter(now) }] }
}

/** Longer than the pages take to call an edge offline: a restart is no outage. */
export const silentAfterMs = 60_000

/** Emits each edge whose heartbeats have stopped, once per outage: the process that marks the edge emits it. */
export async function findSilentEdges({ db, clock }: PlatformContext): Promise<void> {
  const now = clock()
  const since = new Date(now.getTime() - silentAfterMs)
  const rows = await db.$queryRaw<{ id: string }[]>`
    select id::text from organizations_with_silent_edges(${since}) as id`
  await inEachOrganization(
    { db },
    async (transaction, organizationId) => {
      const edges = await transaction.$queryRaw<SilentEdge[]>`
        update edge set silence_told_at = ${now} from site
        where edge.organization_id = ${organizationId}::uuid and site.organization_id = edge.organization_id
          and site.id = edge.site_id and edge.revoked_at is null and edge.heartbeat_at <= ${since}
          and (edge.silence_told_at is null or edge.silence_told_at < edge.heartbeat_at)
        returning edge.id::text, edge.name, edge.heartbeat_at, site.farm_id::text, site.id::text as site_id,
          site.name as site_name`
      await emit('edgesFellSilent', { db: transaction, now, organizationId, edges })
    },
    rows.map(({ id }) => id),
  )
}
