import type { Prisma } from '@bootfarm/db'
import { peerHeardWithinMs } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import { visibleCollections, visibleDevices, visibleSites } from '../access/visible.ts'
import { collectionSummaryOf, collectionSummarySelect } from '../collection/public.ts'
import { byName, nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { edgeSummaryOf, edgeSummarySelect, heartbeatOf, onlineEdgeFilter } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import { personalityOf } from '../rules/device/personality.ts'
import { sharesOf } from './edge-share.ts'
import { type SiteDetail, type SiteSummary, type siteListInput, type sitePage, siteSort } from './schema.ts'

const rowsShownMax = 100

/** Throws `not_found`. */
export async function getSite(context: ServiceContext, siteId: string): Promise<SiteDetail> {
  const { db, clock, actor } = context
  const row = await db.site.findUnique({
    where: ownRow(actor, siteId),
    select: {
      ...siteSummarySelect(actor),
      unknownDevices: true,
      bootProgramSet: true,
      capture: true,
      cacheCopyHours: true,
      personality: true,
      farm: { select: { name: true } },
      edges: { orderBy: byName, take: rowsShownMax, select: edgeSummarySelect },
      collections: {
        where: visibleCollections(actor),
        orderBy: byName,
        take: rowsShownMax,
        select: collectionSummarySelect(actor),
      },
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
    cacheCopyHours: row.cacheCopyHours,
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
  return peers.filter(({ heardMsAgo }) => heardMsAgo < peerHeardWithinMs).length
}

function siteSummarySelect(actor: Actor) {
  return {
    id: true,
    farmId: true,
    name: true,
    timeZone: true,
    revision: true,
    createdAt: true,
    _count: { select: { edges: { where: { revokedAt: null } }, devices: { where: visibleDevices(actor) } } },
  } satisfies Prisma.SiteSelect
}
type SiteSummaryRow = Prisma.SiteGetPayload<{ select: ReturnType<typeof siteSummarySelect> }>

export async function listSites(
  context: ServiceContext,
  input: z.output<typeof siteListInput>,
): Promise<z.infer<typeof sitePage>> {
  const order = listOrder(siteSort, input)
  const rows = await context.db.site.findMany({
    where: {
      organizationId: context.actor.organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...(input.siteId ? { id: input.siteId } : {}),
      ...nameContains(input.search),
      AND: [visibleSites(context.actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: siteSummarySelect(context.actor),
  })
  const online = await countOnlineEdges(
    context,
    rows.map((row) => row.id),
  )
  return order.page(rows, (row) => siteSummaryOf(row, online.get(row.id) ?? 0))
}

/** By site id; a site without any is absent. */
async function countOnlineEdges({ db, clock, actor }: ServiceContext, siteIds: string[]): Promise<Map<string, number>> {
  const groups = await db.edge.groupBy({
    by: ['siteId'],
    where: { organizationId: actor.organizationId, siteId: { in: siteIds }, ...onlineEdgeFilter(clock()) },
    _count: { _all: true },
  })
  return new Map(groups.map((group) => [group.siteId, group._count._all]))
}

function siteSummaryOf(row: SiteSummaryRow, edgesOnline: number): SiteSummary {
  return {
    id: row.id,
    farmId: row.farmId,
    name: row.name,
    timeZone: row.timeZone,
    revision: row.revision,
    edgeCount: row._count.edges,
    edgesOnline,
    deviceCount: row._count.devices,
  }
}
