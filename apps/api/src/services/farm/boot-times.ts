import { Prisma } from '@bootfarm/db'
import { type BootTimes, daysBefore, fillDays } from '../../domain/boot-times.ts'
import type { ServiceContext } from '../service-context.ts'

const dayMs = 86_400_000
const daysShown = 30

interface BootTimesRow {
  day: string
  ready_count: number
  failed_count: number
  generated_count: number
  p50_us: number | null
  p95_us: number | null
}

// percentile_cont interpolates, so it answers in fractions of a µs.
const aggregates = Prisma.sql`
  count(*) filter (where outcome = 'ready')::int as ready_count,
  count(*) filter (where outcome in ('failed', 'silent'))::int as failed_count,
  count(*) filter (where generated)::int as generated_count,
  round(percentile_cont(0.5) within group (order by total_us) filter (where outcome = 'ready'))::float8 as p50_us,
  round(percentile_cont(0.95) within group (order by total_us) filter (where outcome = 'ready'))::float8 as p95_us`

export async function bootTimesOfLastDay(context: ServiceContext, farmId: string): Promise<BootTimes> {
  const since = new Date(context.clock().getTime() - dayMs)
  const [row] = await context.db.$queryRaw<BootTimesRow[]>`
    select '' as day, ${aggregates} from boot where ${bootsOfFarm(context, farmId, since)}`
  return row ? bootTimesOf(row) : bootTimesOf(emptyRow)
}

export async function bootTimesByDay(
  context: ServiceContext,
  farmId: string,
): Promise<(BootTimes & { day: string })[]> {
  const days = daysBefore(context.clock(), daysShown)
  const since = new Date(`${days[0]}T00:00:00Z`)
  const rows = await context.db.$queryRaw<BootTimesRow[]>`
    select to_char(started_at at time zone 'UTC', 'YYYY-MM-DD') as day, ${aggregates}
    from boot where ${bootsOfFarm(context, farmId, since)} group by 1`
  return fillDays(
    days,
    rows.map((row) => ({ day: row.day, ...bootTimesOf(row) })),
  )
}

function bootsOfFarm({ actor }: ServiceContext, farmId: string, since: Date): Prisma.Sql {
  const { organizationId } = actor
  return Prisma.sql`organization_id = ${organizationId}::uuid and started_at >= ${since} and site_id in
    (select id from site where organization_id = ${organizationId}::uuid and farm_id = ${farmId}::uuid)`
}

const emptyRow: BootTimesRow = {
  day: '',
  ready_count: 0,
  failed_count: 0,
  generated_count: 0,
  p50_us: null,
  p95_us: null,
}

function bootTimesOf(row: BootTimesRow): BootTimes {
  return {
    readyCount: row.ready_count,
    failedCount: row.failed_count,
    generatedCount: row.generated_count,
    p50Us: row.p50_us,
    p95Us: row.p95_us,
  }
}
