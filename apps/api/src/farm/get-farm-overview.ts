import {
  sitesOfVisibleBoots,
  visibleBoots,
  visibleCollections,
  visibleDevices,
  visibleEdges,
  visibleSites,
} from '../access/visible.ts'
import { type BootTimes, bootSummaryOf, daysBefore, fillDays, readBootDays, readBootsByStart } from '../boot/public.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { onlineEdgeFilter } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import type { RollupGrain } from '../rules/boot-rollup.ts'
import { keyAlarms } from '../rules/device/device-key.ts'
import { quantileOf, type TimeSketch } from '../rules/time-sketch.ts'
import type { FarmOverview } from './schema.ts'

const recentBootsMax = 10

/** Throws `not_found`. */
export async function getFarmOverview(context: ServiceContext, farmId: string): Promise<FarmOverview> {
  const { db, clock, actor } = context
  const farm = await db.farm.findUnique({
    where: ownRow(actor, farmId),
    select: { id: true, name: true, createdAt: true, revision: true },
  })
  if (!farm) throw new AppError('not_found')
  const [sites, counts, visible, days] = await Promise.all([
    readSites(context, farmId),
    countRows(context, farmId),
    visibleBoots(context),
    readBootDays(context),
  ])
  const recentBoots = await readBootsByStart(context, {
    days,
    where: { AND: [{ siteId: { in: sites.ids } }, visible] },
    before: null,
    limit: recentBootsMax,
  })
  const [last24Hours, byDay] = await Promise.all([
    bootTimesOfLastDay(context, sites.idsOfFigures),
    bootTimesByDay(context, sites.idsOfFigures),
  ])
  const now = clock()
  return {
    farm: { ...farm, createdAt: farm.createdAt.toISOString() },
    counts: { sites: sites.ids.length, ...counts },
    recentBoots: recentBoots.map((row) => bootSummaryOf(row, now)),
    last24Hours,
    byDay,
  }
}

/** The farm's sites that the actor may see, and those whose figures he may see: they are kept by site. */
async function readSites(
  { db, actor }: ServiceContext,
  farmId: string,
): Promise<{ ids: string[]; idsOfFigures: string[] }> {
  const { organizationId } = actor
  const [seen, seenWhole] = await Promise.all(
    [visibleSites(actor), sitesOfVisibleBoots(actor)].map((visible) =>
      db.site.findMany({ where: { organizationId, farmId, AND: [visible] }, select: { id: true } }),
    ),
  )
  const idsOf = (sites: { id: string }[] = []) => sites.map(({ id }) => id)
  return { ids: idsOf(seen), idsOfFigures: idsOf(seenWhole) }
}

async function countRows(
  { db, clock, actor }: ServiceContext,
  farmId: string,
): Promise<Omit<FarmOverview['counts'], 'sites'>> {
  const { organizationId } = actor
  const ofSites = { organizationId, site: { farmId } }
  const ofDevices = { ...ofSites, AND: [visibleDevices(actor)] }
  // Asked at once: the connection answers one after the other, without a wait between.
  const [edges, edgesOnline, collections, devices, devicesBooting, vdisks, keyAlarmCount, keysWaiting, devicesLost] =
    await Promise.all([
      db.edge.count({ where: { ...ofSites, revokedAt: null, AND: [visibleEdges(actor)] } }),
      db.edge.count({ where: { ...ofSites, ...onlineEdgeFilter(clock()), AND: [visibleEdges(actor)] } }),
      db.collection.count({ where: { ...ofSites, AND: [visibleCollections(actor)] } }),
      db.device.count({ where: ofDevices }),
      db.device.count({ where: { ...ofDevices, lastBootId: { not: null }, lastBootOutcome: null } }),
      db.vdisk.count({ where: { organizationId, farmId } }),
      db.device.count({ where: { ...ofDevices, keyLabel: { in: [...keyAlarms] } } }),
      db.device.count({ where: { ...ofDevices, keyLabel: 'key_waits' } }),
      db.device.count({ where: { ...ofDevices, lastBootLost: true } }),
    ])
  return {
    edges,
    edgesOnline,
    collections,
    devices,
    devicesBooting,
    devicesLost,
    vdisks,
    keyAlarms: keyAlarmCount,
    keysWaiting,
  }
}

/** From the rollups: the number of boots does not matter. */

const hourMs = 3_600_000
const hoursShown = 24
const daysShown = 30

/** Sums over the sites of what began in one hour or one UTC day. */
interface SumsRow {
  day: string
  ready_count: number
  failed_count: number
  generated_count: number
  buckets: TimeSketch
}

interface Span {
  siteIds: string[]
  grain: RollupGrain
  since: Date
}

/** The last 24 hours of the clock, including the current one. */
async function bootTimesOfLastDay(context: ServiceContext, siteIds: string[]): Promise<BootTimes> {
  const hour = Math.floor(context.clock().getTime() / hourMs) * hourMs
  const since = new Date(hour - (hoursShown - 1) * hourMs)
  const rows = await readSums(context, { siteIds, grain: 'hour', since })
  return {
    readyCount: sum(rows.map((row) => row.ready_count)),
    failedCount: sum(rows.map((row) => row.failed_count)),
    generatedCount: sum(rows.map((row) => row.generated_count)),
    ...quantiles(rows.map(({ buckets }) => buckets)),
  }
}

async function bootTimesByDay(context: ServiceContext, siteIds: string[]): Promise<(BootTimes & { day: string })[]> {
  const days = daysBefore(context.clock(), daysShown)
  const since = new Date(`${days[0]}T00:00:00Z`)
  const rows = await readSums(context, { siteIds, grain: 'day', since })
  return fillDays(
    days,
    rows.map((row) => ({
      day: row.day,
      readyCount: row.ready_count,
      failedCount: row.failed_count,
      generatedCount: row.generated_count,
      ...quantiles([row.buckets]),
    })),
  )
}

/** PostgreSQL adds the sketches up: as rows they would be some hundred times as many. */
function readSums({ db, actor }: ServiceContext, { siteIds, grain, since }: Span): Promise<SumsRow[]> {
  const { organizationId } = actor
  return db.$queryRaw<SumsRow[]>`
    with summed as (
      select starts_at, ready_count, failed_count + silent_count as failed_count, generated_count, total_us_buckets
      from boot_rollup where organization_id = ${organizationId}::uuid and grain = ${grain}::"RollupGrain"
        and starts_at >= ${since} and site_id = any(${siteIds}::uuid[])
    ), sketches as (
      select starts_at, jsonb_object_agg(bucket, count) as buckets from (
        select starts_at, key as bucket, sum(value::integer) as count
        from summed, jsonb_each(total_us_buckets) group by starts_at, key
      ) as counted group by starts_at
    )
    select to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD') as day, sum(ready_count)::int as ready_count,
      sum(failed_count)::int as failed_count, sum(generated_count)::int as generated_count,
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
