import { Prisma } from '@bootfarm/db'
import {
  seesWholeFarm,
  sitesOfVisibleBoots,
  visibleBoots,
  visibleCollections,
  visibleDevicesSql,
  visibleEdges,
  visibleSites,
} from '../access/visible.ts'
import {
  type BootRow,
  type BootTimes,
  bootSummaryOf,
  daysBefore,
  fillDays,
  readBootDays,
  readBootsByStart,
} from '../boot/public.ts'
import { KeptValues } from '../context/kept-values.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { onlineEdgeFilter } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import type { RollupGrain } from '../rules/boot-rollup.ts'
import { keyAlarms } from '../rules/device/device-key.ts'
import { quantileOf, type TimeSketch } from '../rules/time-sketch.ts'
import type { FarmOverview } from './schema.ts'

const recentBootsMax = 10

/** Figures of a farm with more sites are up to `figuresKeptMs` old: reading them takes a large part of a second. */
const currentSitesMax = 500
const figuresKeptMs = 10_000
const figuresKeptMax = 100
const keptFigures = new KeptValues<Figures>({ keptMs: figuresKeptMs, countMax: figuresKeptMax })
/** Whoever has them at the whole farm sees the same figures. */
const figuresPermissions = ['site.read', 'edge.read', 'collection.read', 'device.read', 'boot.read'] as const

type Figures = Pick<FarmOverview, 'counts' | 'last24Hours' | 'byDay'>

/** Throws `not_found`. */
export async function getFarmOverview(context: ServiceContext, farmId: string): Promise<FarmOverview> {
  const { db, clock, actor } = context
  const farm = await db.farm.findUnique({
    where: ownRow(actor, farmId),
    select: { id: true, name: true, createdAt: true, revision: true },
  })
  if (!farm) throw new AppError('not_found')
  const recentBoots = await readRecentBoots(context, farmId)
  const figures = await currentFigures(context, farmId)
  const now = clock()
  return {
    farm: { ...farm, createdAt: farm.createdAt.toISOString() },
    recentBoots: recentBoots.map((row) => bootSummaryOf(row, now)),
    ...figures,
  }
}

async function currentFigures(context: ServiceContext, farmId: string): Promise<Figures> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const sites = await db.site.count({ where: { organizationId, farmId, AND: [visibleSites(actor)] } })
  const read = () => readFigures(context, farmId, sites)
  const isWhole = figuresPermissions.every((permission) => seesWholeFarm(actor, permission, farmId))
  if (!isWhole || sites <= currentSitesMax) return read()
  return keptFigures.get(`${organizationId} ${farmId}`, clock(), read)
}

/** The farm's sites that match, as ids. */
async function siteIdsOf(
  { db, actor: { organizationId } }: ServiceContext,
  farmId: string,
  visible: Prisma.SiteWhereInput,
): Promise<string[]> {
  const sites = await db.site.findMany({ where: { organizationId, farmId, AND: [visible] }, select: { id: true } })
  return sites.map(({ id }) => id)
}

/** The organization's newest boots are the farm's in most cases: then its sites are not listed. */
async function readRecentBoots(context: ServiceContext, farmId: string): Promise<BootRow[]> {
  const { db, actor } = context
  const { organizationId } = actor
  const [visible, days] = await Promise.all([visibleBoots(context), readBootDays(context)])
  const newest = { days, before: null, limit: recentBootsMax }
  const boots = await readBootsByStart(context, { ...newest, where: visible })
  const siteIds = [...new Set(boots.map(({ siteId }) => siteId))]
  const ofFarm = { organizationId, farmId, id: { in: siteIds }, AND: [visibleSites(actor)] }
  if ((await db.site.count({ where: ofFarm })) === siteIds.length) return boots
  const ids = await siteIdsOf(context, farmId, visibleSites(actor))
  return readBootsByStart(context, { ...newest, where: { AND: [{ siteId: { in: ids } }, visible] } })
}

interface DeviceCounts {
  devices: number
  devicesBooting: number
  keyAlarms: number
  keysWaiting: number
  devicesLost: number
}

async function countRows(context: ServiceContext, farmId: string): Promise<Omit<FarmOverview['counts'], 'sites'>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const ofSites = { organizationId, site: { farmId } }
  // Asked at once: the connection answers one after the other, without a wait between.
  const [edges, edgesOnline, collections, [ofDevices], vdisks] = await Promise.all([
    db.edge.count({ where: { ...ofSites, revokedAt: null, AND: [visibleEdges(actor)] } }),
    db.edge.count({ where: { ...ofSites, ...onlineEdgeFilter(clock()), AND: [visibleEdges(actor)] } }),
    db.collection.count({ where: { ...ofSites, AND: [visibleCollections(actor)] } }),
    countDevices(context, farmId),
    db.vdisk.count({ where: { organizationId, farmId } }),
  ])
  if (!ofDevices) throw new AppError('internal', { internal: 'a count gave no row' })
  return { edges, edgesOnline, collections, vdisks, ...ofDevices }
}

/** All of them in one pass. */
function countDevices({ db, actor }: ServiceContext, farmId: string): Promise<DeviceCounts[]> {
  const { organizationId } = actor
  return db.$queryRaw<DeviceCounts[]>`
    select count(*)::integer as "devices",
      count(*) filter (where last_boot_id is not null and last_boot_outcome is null)::integer as "devicesBooting",
      count(*) filter (where key_label = any(${[...keyAlarms]}::"DeviceKeyLabel"[]))::integer as "keyAlarms",
      count(*) filter (where key_label = 'key_waits')::integer as "keysWaiting",
      count(*) filter (where last_boot_lost)::integer as "devicesLost"
    from device where organization_id = ${organizationId}::uuid and ${visibleDevicesSql(actor)}
      and site_id in (select id from site where organization_id = ${organizationId}::uuid and farm_id = ${farmId}::uuid)`
}

/** Times of boots are those of the sites of which the actor may see every boot. */
async function readFigures(context: ServiceContext, farmId: string, sites: number): Promise<Figures> {
  const { actor } = context
  const ofSites = seesWholeFarm(actor, 'boot.read', farmId)
    ? Prisma.sql`in (select id from site
        where organization_id = ${actor.organizationId}::uuid and farm_id = ${farmId}::uuid)`
    : Prisma.sql`= any(${await siteIdsOf(context, farmId, sitesOfVisibleBoots(actor))}::uuid[])`
  const [counts, last24Hours, byDay] = await Promise.all([
    countRows(context, farmId),
    bootTimesOfLastDay(context, ofSites),
    bootTimesByDay(context, ofSites),
  ])
  return { counts: { sites, ...counts }, last24Hours, byDay }
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
  /** The condition behind `site_id`. */
  sites: Prisma.Sql
  grain: RollupGrain
  since: Date
}

/** The last 24 hours of the clock, including the current one. */
async function bootTimesOfLastDay(context: ServiceContext, sites: Prisma.Sql): Promise<BootTimes> {
  const hour = Math.floor(context.clock().getTime() / hourMs) * hourMs
  const since = new Date(hour - (hoursShown - 1) * hourMs)
  const rows = await readSums(context, { sites, grain: 'hour', since })
  return {
    readyCount: sum(rows.map((row) => row.ready_count)),
    failedCount: sum(rows.map((row) => row.failed_count)),
    generatedCount: sum(rows.map((row) => row.generated_count)),
    ...quantiles(rows.map(({ buckets }) => buckets)),
  }
}

async function bootTimesByDay(context: ServiceContext, sites: Prisma.Sql): Promise<(BootTimes & { day: string })[]> {
  const days = daysBefore(context.clock(), daysShown)
  const since = new Date(`${days[0]}T00:00:00Z`)
  const rows = await readSums(context, { sites, grain: 'day', since })
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
function readSums({ db, actor }: ServiceContext, { sites, grain, since }: Span): Promise<SumsRow[]> {
  const { organizationId } = actor
  return db.$queryRaw<SumsRow[]>`
    with summed as (
      select starts_at, ready_count, failed_count + silent_count as failed_count, generated_count, total_us_buckets
      from boot_rollup where organization_id = ${organizationId}::uuid and grain = ${grain}::"RollupGrain"
        and starts_at >= ${since} and site_id ${sites}
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
