import type { RollupGrain } from '../../domain/boot-rollup.ts'
import { type BootTimes, daysBefore, fillDays } from '../../domain/boot-times.ts'
import { quantileOf, type TimeSketch } from '../../domain/time-sketch.ts'
import type { ServiceContext } from '../service-context.ts'

/** From the rollups: how many boots there were does not matter. */

const hourMs = 3_600_000
const hoursShown = 24
const daysShown = 30

interface CountsRow {
  day: string
  ready_count: number
  failed_count: number
  generated_count: number
}

interface BucketRow {
  day: string
  bucket: string
  count: number
}

interface Span {
  siteIds: string[]
  grain: RollupGrain
  since: Date
}

/** Of the last 24 hours as the clock has them, the one that goes on among them. */
export async function bootTimesOfLastDay(context: ServiceContext, siteIds: string[]): Promise<BootTimes> {
  const hour = Math.floor(context.clock().getTime() / hourMs) * hourMs
  const since = new Date(hour - (hoursShown - 1) * hourMs)
  const counts = await readCounts(context, { siteIds, grain: 'hour', since })
  const buckets = await readBuckets(context, { siteIds, grain: 'hour', since })
  return {
    readyCount: sum(counts.map((row) => row.ready_count)),
    failedCount: sum(counts.map((row) => row.failed_count)),
    generatedCount: sum(counts.map((row) => row.generated_count)),
    ...quantiles(buckets),
  }
}

export async function bootTimesByDay(
  context: ServiceContext,
  siteIds: string[],
): Promise<(BootTimes & { day: string })[]> {
  const days = daysBefore(context.clock(), daysShown)
  const since = new Date(`${days[0]}T00:00:00Z`)
  const counts = await readCounts(context, { siteIds, grain: 'day', since })
  const buckets = Map.groupBy(await readBuckets(context, { siteIds, grain: 'day', since }), ({ day }) => day)
  return fillDays(
    days,
    counts.map((row) => ({
      day: row.day,
      readyCount: row.ready_count,
      failedCount: row.failed_count,
      generatedCount: row.generated_count,
      ...quantiles(buckets.get(row.day) ?? []),
    })),
  )
}

function readCounts({ db, actor }: ServiceContext, { siteIds, grain, since }: Span): Promise<CountsRow[]> {
  const { organizationId } = actor
  return db.$queryRaw<CountsRow[]>`
    select to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD') as day, sum(ready_count)::int as ready_count,
      sum(failed_count + silent_count)::int as failed_count, sum(generated_count)::int as generated_count
    from boot_rollup where organization_id = ${organizationId}::uuid and grain = ${grain}::"RollupGrain"
      and starts_at >= ${since} and site_id = any(${siteIds}::uuid[])
    group by 1`
}

function readBuckets({ db, actor }: ServiceContext, { siteIds, grain, since }: Span): Promise<BucketRow[]> {
  const { organizationId } = actor
  return db.$queryRaw<BucketRow[]>`
    select to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD') as day, key as bucket, sum(value::int)::int as count
    from boot_rollup, jsonb_each_text(total_us_buckets)
    where organization_id = ${organizationId}::uuid and grain = ${grain}::"RollupGrain"
      and starts_at >= ${since} and site_id = any(${siteIds}::uuid[])
    group by 1, 2`
}

function quantiles(rows: BucketRow[]): Pick<BootTimes, 'p50Us' | 'p95Us'> {
  const sketch: TimeSketch = {}
  for (const { bucket, count } of rows) sketch[bucket] = (sketch[bucket] ?? 0) + count
  return { p50Us: quantileOf(sketch, 0.5), p95Us: quantileOf(sketch, 0.95) }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
