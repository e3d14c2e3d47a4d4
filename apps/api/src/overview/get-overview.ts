import { Prisma } from '@bootfarm/db'
import {
  seesWholeFarm,
  sitesOfVisibleBoots,
  visibleBoots,
  visibleCollections,
  visibleDevicesSql,
  visibleEdges,
  visibleFarms,
  visibleSites,
  visibleVdisks,
} from '../access/visible.ts'
import { type BootRow, bootSummaryOf, countBoots, readBootDays, readBootsByStart } from '../boot/public.ts'
import { KeptValues } from '../context/kept-values.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { onlineEdgeFilter } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { keyAlarms } from '../rules/device/device-key.ts'
import { bootTimesByDay, bootTimesOfLastDay } from './boot-figures.ts'
import type { Overview } from './schema.ts'

const recentBootsMax = 10

/** Figures of more sites are up to `figuresKeptMs` old: reading them takes a large part of a second. */
const currentSitesMax = 500
const figuresKeptMs = 10_000
const figuresKeptMax = 100
const keptFigures = new KeptValues<Figures>({ keptMs: figuresKeptMs, countMax: figuresKeptMax })
/** Everybody with these at the whole farm sees the same figures. */
const figuresPermissions = [
  'site.read',
  'edge.read',
  'collection.read',
  'device.read',
  'boot.read',
  'vdisk.read',
] as const

type Figures = Pick<Overview, 'counts' | 'last24Hours' | 'byDay'>

/** The whole organization without either; a site is within its farm, named or not. */
export interface Scope {
  farmId?: string | undefined
  siteId?: string | undefined
}

/** Throws `not_found` for a farm or site that the actor does not see. */
export async function getOverview(context: ServiceContext, scope: Scope): Promise<Overview> {
  const named = await nameScope(context, scope)
  const recentBoots = await readRecentBoots(context, scope)
  const figures = await currentFigures(context, scope)
  const now = context.clock()
  return {
    ...named,
    recentBoots: recentBoots.map((row) => bootSummaryOf(row, now)),
    ...figures,
  }
}

/** Throws `not_found` for a farm or site that the actor does not see. */
export async function nameScope(
  { db, actor }: ServiceContext,
  { farmId, siteId }: Scope,
): Promise<Pick<Overview, 'farm' | 'site'>> {
  const select = { id: true, name: true }
  const site = siteId
    ? await db.site.findUnique({
        where: { ...ownRow(actor, siteId), AND: [visibleSites(actor)] },
        select: { ...select, farm: { select } },
      })
    : null
  const farm = farmId
    ? await db.farm.findUnique({ where: { ...ownRow(actor, farmId), AND: [visibleFarms(actor)] }, select })
    : null
  const isApart = site && farm && site.farm.id !== farm.id
  if ((siteId && !site) || (farmId && !farm) || isApart) throw new AppError('not_found')
  return { farm: farm ?? site?.farm ?? null, site: site && { id: site.id, name: site.name } }
}

async function currentFigures(context: ServiceContext, scope: Scope): Promise<Figures> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const sites = await db.site.count({ where: { ...sitesOf(context, scope), AND: [visibleSites(actor)] } })
  const read = () => readFigures(context, scope, sites)
  const isWhole = figuresPermissions.every((permission) => seesWholeFarm(actor, permission, scope.farmId ?? ''))
  if (!isWhole || sites <= currentSitesMax) return read()
  return keptFigures.get(`${organizationId} ${scope.farmId ?? ''}`, clock(), read)
}

function sitesOf({ actor: { organizationId } }: ServiceContext, { farmId, siteId }: Scope) {
  return { organizationId, ...(farmId ? { farmId } : {}), ...(siteId ? { id: siteId } : {}) }
}

/** The sites of the scope that match, as ids. */
async function siteIdsOf(context: ServiceContext, scope: Scope, visible: Prisma.SiteWhereInput): Promise<string[]> {
  const where = { ...sitesOf(context, scope), AND: [visible] }
  const sites = await context.db.site.findMany({ where, select: { id: true } })
  return sites.map(({ id }) => id)
}

/** The organization's newest boots are the scope's in most cases: then its sites are not listed. */
async function readRecentBoots(context: ServiceContext, scope: Scope): Promise<BootRow[]> {
  const { db, actor } = context
  const [visible, days] = await Promise.all([visibleBoots(context), readBootDays(context)])
  const newest = { days, before: null, limit: recentBootsMax }
  const boots = await readBootsByStart(context, { ...newest, where: visible })
  if (!scope.farmId && !scope.siteId) return boots
  const siteIds = [...new Set(boots.map(({ siteId }) => siteId))]
  const ofScope = { AND: [sitesOf(context, scope), { id: { in: siteIds } }, visibleSites(actor)] }
  if ((await db.site.count({ where: ofScope })) === siteIds.length) return boots
  const ids = await siteIdsOf(context, scope, visibleSites(actor))
  return readBootsByStart(context, { ...newest, where: { AND: [{ siteId: { in: ids } }, visible] } })
}

interface DeviceCounts {
  devices: number
  devicesBooting: number
  keyAlarms: number
  keysWaiting: number
  devicesLost: number
}

async function countRows(context: ServiceContext, scope: Scope): Promise<Omit<Overview['counts'], 'sites'>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const ofSites = { organizationId, site: sitesOf(context, scope) }
  const ofFarms = await farmsOf(context, scope)
  // Asked at once: the connection answers one after the other, without a wait between.
  const [edges, edgesOnline, collections, [ofDevices], vdisks, bootsBooting] = await Promise.all([
    db.edge.count({ where: { ...ofSites, revokedAt: null, AND: [visibleEdges(actor)] } }),
    db.edge.count({ where: { ...ofSites, ...onlineEdgeFilter(clock()), AND: [visibleEdges(actor)] } }),
    db.collection.count({ where: { ...ofSites, AND: [visibleCollections(actor)] } }),
    countDevices(context, scope),
    db.vdisk.count({ where: { organizationId, ...ofFarms, AND: [visibleVdisks(actor)] } }),
    countBooting(context, scope),
  ])
  if (!ofDevices) throw new AppError('internal', { internal: 'a count gave no row' })
  return { edges, edgesOnline, collections, vdisks, bootsBooting, ...ofDevices }
}

/** vDisks are their farm's. */
async function farmsOf(context: ServiceContext, scope: Scope): Promise<{ farmId?: string }> {
  if (scope.farmId) return { farmId: scope.farmId }
  if (!scope.siteId) return {}
  const site = await context.db.site.findUniqueOrThrow({
    where: ownRow(context.actor, scope.siteId),
    select: { farmId: true },
  })
  return { farmId: site.farmId }
}

/** The same boots as the list with `outcome=booting` has. */
async function countBooting(context: ServiceContext, scope: Scope): Promise<number> {
  const isWhole = !scope.farmId && !scope.siteId
  const [visible, siteIds, days] = await Promise.all([
    visibleBoots(context),
    isWhole ? null : siteIdsOf(context, scope, visibleSites(context.actor)),
    readBootDays(context),
  ])
  const ofSites = siteIds ? { siteId: { in: siteIds } } : {}
  return countBoots(context, days, { AND: [visible, { outcome: null }, ofSites] })
}

/** All of them in one pass. */
function countDevices({ db, actor }: ServiceContext, { farmId, siteId }: Scope): Promise<DeviceCounts[]> {
  const { organizationId } = actor
  const ofFarm = farmId ? Prisma.sql`and farm_id = ${farmId}::uuid` : Prisma.empty
  const ofSite = siteId ? Prisma.sql`and id = ${siteId}::uuid` : Prisma.empty
  return db.$queryRaw<DeviceCounts[]>`
    select count(*)::integer as "devices",
      count(*) filter (where last_boot_id is not null and last_boot_outcome is null)::integer as "devicesBooting",
      count(*) filter (where key_label = any(${[...keyAlarms]}::"DeviceKeyLabel"[]))::integer as "keyAlarms",
      count(*) filter (where key_label = 'key_waits')::integer as "keysWaiting",
      count(*) filter (where last_boot_lost)::integer as "devicesLost"
    from device where organization_id = ${organizationId}::uuid and ${visibleDevicesSql(actor)}
      and site_id in (select id from site where organization_id = ${organizationId}::uuid ${ofFarm} ${ofSite})`
}

/** Times of boots are those of the sites of which the actor may see every boot. */
async function readFigures(context: ServiceContext, scope: Scope, sites: number): Promise<Figures> {
  const { actor } = context
  const ofFarm = scope.farmId ? Prisma.sql`and farm_id = ${scope.farmId}::uuid` : Prisma.empty
  const seesAll = !scope.siteId && seesWholeFarm(actor, 'boot.read', scope.farmId ?? '')
  const ofSites = seesAll
    ? Prisma.sql`in (select id from site where organization_id = ${actor.organizationId}::uuid ${ofFarm})`
    : Prisma.sql`= any(${await siteIdsOf(context, scope, sitesOfVisibleBoots(actor))}::uuid[])`
  const [counts, last24Hours, byDay] = await Promise.all([
    countRows(context, scope),
    bootTimesOfLastDay(context, ofSites),
    bootTimesByDay(context, ofSites),
  ])
  return { counts: { sites, ...counts }, last24Hours, byDay }
}
