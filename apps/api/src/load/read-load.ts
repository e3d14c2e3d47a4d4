import { visibleEdges } from '../access/visible.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type LoadRange, quartersKeptDays, rangeOf } from './load-steps.ts'
import type { LoadPoint, LoadView } from './schema.ts'

const dayMs = 86_400_000
/** A browser's clock may be ahead of this one. */
const aheadMaxMs = 60_000
/** What edges say of themselves may add up to more than JSON keeps exact. */
const numberMax = Number.MAX_SAFE_INTEGER

/** The peaks of several edges need not have been at the same time. */
const noPeaks = { sentPeakBytesPerSecond: null, processorPeakShare: null }

interface RangeInput {
  rangeMinutes: number
  until?: string | undefined
}

/** Throws `not_found`, and `invalid` for a range that lies in the future or is not kept any more. */
export async function getEdgeLoad(
  context: ServiceContext,
  { edgeId, ...input }: RangeInput & { edgeId: string },
): Promise<LoadView> {
  const { db, actor } = context
  const edge = await db.edge.findUnique({ where: ownRow(actor, edgeId), select: { id: true } })
  if (!edge) throw new AppError('not_found')
  return readLoad(context, [edge.id], input)
}

/** The edges of a site together. Throws as `getEdgeLoad` does. */
export async function getSiteLoad(
  context: ServiceContext,
  { siteId, ...input }: RangeInput & { siteId: string },
): Promise<LoadView> {
  const { db, actor } = context
  const site = await db.site.findUnique({ where: ownRow(actor, siteId), select: { id: true } })
  if (!site) throw new AppError('not_found')
  const edges = await db.edge.findMany({
    where: { organizationId: actor.organizationId, siteId, AND: [visibleEdges(actor)] },
    select: { id: true },
  })
  return readLoad(
    context,
    edges.map(({ id }) => id),
    input,
  )
}

async function readLoad(context: ServiceContext, edgeIds: string[], input: RangeInput): Promise<LoadView> {
  const range = askedRange(input, context.clock())
  const points = await readPoints(context, edgeIds, range)
  return {
    from: range.from.toISOString(),
    until: range.until.toISOString(),
    stepMinutes: range.stepMinutes,
    points: points.map(({ at, edges, ...point }) => ({
      at: at.toISOString(),
      edges,
      ...numbersOf(point),
      ...(edgeIds.length > 1 && noPeaks),
    })),
  }
}

function askedRange({ rangeMinutes, until }: RangeInput, now: Date): LoadRange {
  const end = until === undefined ? now : new Date(until)
  if (end.getTime() > now.getTime() + aheadMaxMs)
    throw new AppError('invalid', { public: 'until: The range ends in the future.' })
  if (end.getTime() < now.getTime() - quartersKeptDays * dayMs) {
    const text = `until: Loads are kept for ${quartersKeptDays} days. Choose a later range.`
    throw new AppError('invalid', { public: text })
  }
  return rangeOf({ until: end, rangeMinutes, now })
}

type Numbers = Omit<LoadPoint, 'at' | 'edges'>
interface PointRow extends Record<keyof Numbers, number | bigint | null> {
  at: Date
  edges: number
}

function numbersOf(row: Omit<PointRow, 'at' | 'edges'>): Numbers {
  const numbers = Object.entries(row).map(([name, value]) => [
    name,
    value === null ? null : Math.min(Number(value), numberMax),
  ])
  return Object.fromEntries(numbers) as Numbers
}

/** Rates are those of each edge over the time that is known of it, added up. */
function readPoints(
  { db, actor }: ServiceContext,
  edgeIds: string[],
  { from, until, rowMinutes, stepMinutes }: LoadRange,
): Promise<PointRow[]> {
  return db.$queryRaw<PointRow[]>`
    with of_edge as (
      select date_bin(make_interval(mins => ${stepMinutes}::integer), at, timestamptz '2000-01-01 00:00:00+00') as at,
        nullif(sum(covered_ms), 0)::float8 as covered_ms, sum(streams_ms)::float8 as streams_ms,
        sum(booting_ms)::float8 as booting_ms, sum(stream_bytes)::float8 as stream_bytes,
        sum(file_bytes)::float8 as file_bytes, sum(reads)::float8 as reads, sum(cold_reads)::float8 as cold_reads,
        sum(cold_us)::float8 as cold_us, sum(processor_ms)::float8 as processor_ms, sum(busy_ms)::float8 as busy_ms,
        max(sent_peak)::float8 as sent_peak, max(busy_peak)::float8 as busy_peak,
        avg(memory_total_bytes) as memory_total, avg(memory_available_bytes) as memory_available,
        avg(file_cache_bytes) as file_cache, avg(store_total_bytes) as store_total, avg(store_free_bytes) as store_free,
        max(link_mbps) as link
      from edge_load
      where organization_id = ${actor.organizationId}::uuid and edge_id = any(${edgeIds}::uuid[])
        and step_minutes = ${rowMinutes}::smallint and at >= ${from} and at < ${until}
      group by edge_id, 1
    )
    select at, count(*)::integer as edges,
      sum(stream_bytes * 1000 / covered_ms) as "streamBytesPerSecond",
      sum(file_bytes * 1000 / covered_ms) as "fileBytesPerSecond",
      max(sent_peak) filter (where covered_ms is not null) as "sentPeakBytesPerSecond",
      sum(streams_ms / covered_ms) as "streams", sum(booting_ms / covered_ms) as "booting",
      sum(reads * 1000 / covered_ms) as "readsPerSecond",
      1 - sum(cold_reads) / nullif(sum(reads), 0) as "cacheHitShare",
      sum(cold_us) / nullif(sum(cold_reads), 0) as "coldReadMeanUs",
      sum(busy_ms) / nullif(sum(processor_ms), 0) as "processorShare",
      max(busy_peak) filter (where processor_ms > 0) as "processorPeakShare",
      round(sum(memory_total))::bigint as "memoryTotalBytes",
      round(sum(memory_available))::bigint as "memoryAvailableBytes",
      round(sum(file_cache))::bigint as "fileCacheBytes",
      round(sum(store_total))::bigint as "storeTotalBytes",
      round(sum(store_free))::bigint as "storeFreeBytes",
      sum(link)::bigint as "linkMbps"
    from of_edge group by at order by at`
}
