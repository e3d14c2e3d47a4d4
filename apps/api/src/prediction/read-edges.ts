import type { ServiceContext } from '../context/service-context.ts'

const dayMs = 86_400_000
/** What came before may have been another machine. */
const measuredDays = 14
const quarterStep = 15
const bytesPerUsOfMbps = 1 / 8
/** Below this use of the processors, most of it is not for boots. */
const busyShareMin = 0.05

export interface SiteEdge {
  id: string
  /** Null: it does not report the speed. */
  linkMbps: number | null
  /** What its processors send if they do nothing else; null: it was never busy enough to tell. */
  processorBytesPerUs: number | null
}

interface LoadRow {
  edgeId: string
  linkMbps: number | null
  bytes: number | null
  busyMs: number | null
  processorMs: number | null
  coveredMs: number | null
}

export const bytesPerUsOf = (mbps: number): number => mbps * bytesPerUsOfMbps

/** The edges that take boots of a site's devices, with what their heartbeats say. */
export async function readEdges({ db, actor, clock }: ServiceContext, siteId: string): Promise<SiteEdge[]> {
  const { organizationId } = actor
  const edges = await db.edge.findMany({
    where: { organizationId, siteId, revokedAt: null, draining: false },
    orderBy: { id: 'asc' },
    select: { id: true },
  })
  const since = new Date(clock().getTime() - measuredDays * dayMs)
  // The quarter of an hour in which the edge sent most says what a byte costs; the newest one, what its link is.
  const loads = await db.$queryRaw<LoadRow[]>`
    select distinct on (edge_id) edge_id::text as "edgeId",
      (stream_bytes + file_bytes)::float8 as bytes, busy_ms::float8 as "busyMs",
      processor_ms::float8 as "processorMs", covered_ms::float8 as "coveredMs",
      (select newest.link_mbps::float8 from edge_load as newest
        where newest.organization_id = ${organizationId}::uuid and newest.edge_id = load.edge_id
          and newest.step_minutes = ${quarterStep}::smallint and newest.at >= ${since} and newest.link_mbps is not null
        order by newest.at desc limit 1) as "linkMbps"
    from edge_load as load
    where organization_id = ${organizationId}::uuid and edge_id = any(${edges.map(({ id }) => id)}::uuid[])
      and step_minutes = ${quarterStep}::smallint and at >= ${since}
    order by edge_id, stream_bytes + file_bytes desc`
  const byEdge = new Map(loads.map((row) => [row.edgeId, row]))
  return edges.map(({ id }) => {
    const load = byEdge.get(id)
    return { id, linkMbps: load?.linkMbps || null, processorBytesPerUs: load ? processorOf(load) : null }
  })
}

/** Bytes that are sent for each µs in which a processor works, times the processors. */
function processorOf({ bytes, busyMs, processorMs, coveredMs }: LoadRow): number | null {
  if (!bytes || !busyMs || !processorMs || !coveredMs || busyMs < busyShareMin * processorMs) return null
  return (bytes / (busyMs * 1000)) * (processorMs / coveredMs)
}
