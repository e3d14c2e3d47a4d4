import { edgeOnlineWithinMs } from '@bootfarm/proto/uplink'
import { collectionSummaryOf, collectionSummarySelect } from '../collection/public.ts'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { edgeSummaryOf, edgeSummarySelect, heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { personalityOf } from '../rules/personality.ts'
import { sharesOf } from './edge-share.ts'
import { countOnlineEdges, siteSummaryOf, siteSummarySelect } from './list-sites.ts'
import type { SiteDetail } from './schema.ts'

const rowsShownMax = 100
const byName = [{ name: 'asc' as const }, { id: 'asc' as const }]

/** Throws `not_found`. */
export async function getSite(context: ServiceContext, siteId: string): Promise<SiteDetail> {
  const { db, clock, actor } = context
  const row = await db.site.findUnique({
    where: ownRow(actor, siteId),
    select: {
      ...siteSummarySelect,
      unknownDevices: true,
      bootProgramSet: true,
      capture: true,
      createdAt: true,
      personality: true,
      farm: { select: { name: true } },
      edges: { orderBy: byName, take: rowsShownMax, select: edgeSummarySelect },
      collections: { orderBy: byName, take: rowsShownMax, select: collectionSummarySelect },
    },
  })
  if (!row) throw new AppError('not_found')
  const online = await countOnlineEdges(context, [siteId])
  const now = clock()
  const edges = row.edges.map((edge) => edgeSummaryOf(edge, now))
  const shares = sharesOf(edges)
  return {
    ...siteSummaryOf(row, online.get(siteId) ?? 0),
    farmName: row.farm.name,
    unknownDevices: row.unknownDevices,
    bootProgramSet: row.bootProgramSet,
    capture: row.capture,
    createdAt: row.createdAt.toISOString(),
    personality: personalityOf(row.personality),
    edges: edges.map((edge, index) => ({
      ...edge,
      share: shares.get(edge.id) ?? 0,
      peersHeard: peersHeard(row.edges[index]),
    })),
    collections: row.collections.map(collectionSummaryOf),
  }
}

function peersHeard(edge: { heartbeat: unknown } | undefined): number {
  const peers = (edge && heartbeatOf(edge)?.peers) ?? []
  return peers.filter(({ heardMsAgo }) => heardMsAgo < edgeOnlineWithinMs).length
}
