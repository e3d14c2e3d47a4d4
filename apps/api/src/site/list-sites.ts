import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleSites } from '../access/visible.ts'
import { afterName, cutPage, nameContains } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { onlineEdgeFilter } from '../edge/public.ts'
import type { SiteSummary, siteListInput, sitePage } from './schema.ts'

export const siteSummarySelect = {
  id: true,
  farmId: true,
  name: true,
  timeZone: true,
  revision: true,
  _count: { select: { edges: { where: { revokedAt: null } }, devices: true } },
} satisfies Prisma.SiteSelect
type SiteSummaryRow = Prisma.SiteGetPayload<{ select: typeof siteSummarySelect }>

export async function listSites(
  context: ServiceContext,
  input: z.output<typeof siteListInput>,
): Promise<z.infer<typeof sitePage>> {
  const rows = await context.db.site.findMany({
    where: {
      organizationId: context.actor.organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...nameContains(input.search),
      AND: [visibleSites(context.actor), afterName(input.cursor)],
    },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: siteSummarySelect,
  })
  const online = await countOnlineEdges(
    context,
    rows.map((row) => row.id),
  )
  return cutPage(rows, input.limit, {
    item: (row) => siteSummaryOf(row, online.get(row.id) ?? 0),
    key: (row) => [row.name, row.id],
  })
}

/** By site id; a site without any is absent. */
export async function countOnlineEdges(
  { db, clock, actor }: ServiceContext,
  siteIds: string[],
): Promise<Map<string, number>> {
  const groups = await db.edge.groupBy({
    by: ['siteId'],
    where: { organizationId: actor.organizationId, siteId: { in: siteIds }, ...onlineEdgeFilter(clock()) },
    _count: { _all: true },
  })
  return new Map(groups.map((group) => [group.siteId, group._count._all]))
}

export function siteSummaryOf(row: SiteSummaryRow, edgesOnline: number): SiteSummary {
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
