import { visibleBoots, visibleCollections, visibleDevices, visibleEdges, visibleSites } from '../access/visible.ts'
import { bootSummaryOf, readBootDays, readNewestBoots } from '../boot/public.ts'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { onlineEdgeFilter } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { bootTimesByDay, bootTimesOfLastDay } from './boot-times.ts'
import type { FarmOverview } from './schema.ts'

const recentBootsMax = 10

/** Throws `not_found`. */
export async function getFarmOverview(context: ServiceContext, farmId: string): Promise<FarmOverview> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const farm = await db.farm.findUnique({
    where: ownRow({ organizationId }, farmId),
    select: { id: true, name: true, createdAt: true, revision: true },
  })
  if (!farm) throw new AppError('not_found')
  const [siteIds, counts, visible, days] = await Promise.all([
    readSiteIds(context, farmId),
    countRows(context, farmId),
    visibleBoots(context),
    readBootDays(context),
  ])
  const recentBoots = await readNewestBoots(context, {
    days,
    where: { AND: [{ siteId: { in: siteIds } }, visible] },
    before: null,
    limit: recentBootsMax,
  })
  const [last24Hours, byDay] = await Promise.all([
    bootTimesOfLastDay(context, siteIds),
    bootTimesByDay(context, siteIds),
  ])
  const now = clock()
  return {
    farm: { ...farm, createdAt: farm.createdAt.toISOString() },
    counts: { sites: siteIds.length, ...counts },
    recentBoots: recentBoots.map((row) => bootSummaryOf(row, now)),
    last24Hours,
    byDay,
  }
}

/** Of the farm's sites, those that the actor may see. */
async function readSiteIds({ db, actor }: ServiceContext, farmId: string): Promise<string[]> {
  const sites = await db.site.findMany({
    where: { organizationId: actor.organizationId, farmId, AND: [visibleSites(actor)] },
    select: { id: true },
  })
  return sites.map(({ id }) => id)
}

async function countRows(
  { db, clock, actor }: ServiceContext,
  farmId: string,
): Promise<Omit<FarmOverview['counts'], 'sites'>> {
  const { organizationId } = actor
  const ofSites = { organizationId, site: { farmId } }
  const ofDevices = { ...ofSites, AND: [visibleDevices(actor)] }
  // Asked at once: the connection answers one after the other, without a wait between.
  const [edges, edgesOnline, collections, devices, devicesBooting, vdisks] = await Promise.all([
    db.edge.count({ where: { ...ofSites, revokedAt: null, AND: [visibleEdges(actor)] } }),
    db.edge.count({ where: { ...ofSites, ...onlineEdgeFilter(clock()), AND: [visibleEdges(actor)] } }),
    db.collection.count({ where: { ...ofSites, AND: [visibleCollections(actor)] } }),
    db.device.count({ where: ofDevices }),
    db.device.count({ where: { ...ofDevices, lastBootId: { not: null }, lastBootOutcome: null } }),
    db.vdisk.count({ where: { organizationId, farmId } }),
  ])
  return { edges, edgesOnline, collections, devices, devicesBooting, vdisks }
}
