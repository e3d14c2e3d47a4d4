import type { Prisma } from '@bootfarm/db'
import { type BootTimes, daysBefore, fillDays } from '../boot/public.ts'
import type { ServiceContext } from '../context/service-context.ts'
import type { RollupGrain } from '../rules/boot-rollup.ts'
import { quantileOf, type TimeSketch } from '../rules/time-sketch.ts'

/** From the rollups: the number of boots does not matter. */

const hourMs = 3_600_000
const hoursShown = 24
const daysShown = 30

/** Sums over the sites of what began in one hour or one UTC day. */
interface SumsRow {
  day: string
  ready_count: number
  failed_count: number
  no_response_count: number
  generated_count: number
  buckets: TimeSketch
}

interface Span {
  /** The condition behind `site_id`. */
  sites: Prisma.Sql
  grain: RollupGrain
  since: Date
}

/** The start of the last 24 hours of the clock, including the current one. */
export function lastDaySince(now: Date): Date {
  const hour = Math.floor(now.getTime() / hourMs) * hourMs
  return new Date(hour - (hoursShown - 1) * hourMs)
}

export async function bootTimesOfLastDay(
  context: ServiceContext,
  sites: Prisma.Sql,
): Promise<BootTimes & { since: string }> {
  const since = lastDaySince(context.clock())
  const rows = await readSums(context, { sites, grain: 'hour', since })
  return {
    since: since.toISOString(),
    readyCount: sum(rows.map((row) => row.ready_count)),
    failedCount: sum(rows.map((row) => row.failed_count)),
    noResponseCount: sum(rows.map((row) => row.no_response_count)),
    generatedCount: sum(rows.map((row) => row.generated_count)),
    ...quantiles(rows.map(({ buckets }) => buckets)),
  }
}

export async function bootTimesByDay(
  context: ServiceContext,
  sites: Prisma.Sql,
): Promise<(BootTimes & { day: string })[]> {
  const days = daysBefore(context.clock(), daysShown)
  const since = new Date(`${days[0]}T00:00:00Z`)
  const rows = await readSums(context, { sites, grain: 'day', since })
  return fillDays(
    days,
    rows.map((row) => ({
      day: row.day,
      readyCount: row.ready_count,
      failedCount: row.failed_count,
      noResponseCount: row.no_response_count,
      generatedCount: row.generated_count,
      ...quantiles([row.buckets]),
    })),
  )
}

/** PostgreSQL adds the sketches up: as rows they would be some hundred times as many. */
function readSums({ db, actor }: ServiceContext, { sites, grain, since }: Span): Promise<SumsRow[]> {
  const { organizationId } = actor
  return db.$queryRaw<SumsRow[]>`
    with summed as (
      select starts_at, ready_count, failed_count + silent_count as failed_count, no_response_count, generated_count,
        total_us_buckets
      from boot_rollup where organization_id = ${organizationId}::uuid and grain = ${grain}::"RollupGrain"
        and starts_at >= ${since} and site_id ${sites}
    ), sketches as (
      select starts_at, jsonb_object_agg(bucket, count) as buckets from (
        select starts_at, key as bucket, sum(value::integer) as count
        from summed, jsonb_each(total_us_buckets) group by starts_at, key
      ) as counted group by starts_at
    )
    select to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD') as day, sum(ready_count)::int as ready_count,
      sum(failed_count)::int as failed_count, sum(no_response_count)::int as no_response_count,
      sum(generated_count)::int as generated_count,
      coalesce((select buckets from sketches where sketches.starts_at = summed.starts_at), '{}') as buckets
    from summed group by starts_at`
}

function quantiles(sketches: TimeSketch[]): Pick<BootTimes, 'p50Us' | 'p95Us'> {
  const total: TimeSketch = {}
  for (const sketch of sketches)
    for (const [bucket, count] of Object.entries(sketch)) total[bucket] = (total[bucket] ?? 0) + count
  return { p50Us: quantileOf(total, 0.5), p95Us: quantileOf(total, 0.95) }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
