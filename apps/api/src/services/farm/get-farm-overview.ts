import type { FarmOverview } from '../../domain/farm-view.ts'
import { AppError } from '../../errors/app-error.ts'
import { bootSummaryOf } from '../boot/boot-rows.ts'
import { readNewestBoots } from '../boot/newest-boots.ts'
import { onlineEdgeFilter } from '../edge/edge-rows.ts'
import {
  visibleBoots,
  visibleCollections,
  visibleDevices,
  visibleEdges,
  visibleSites,
} from '../scope/visible.ts'
import type { ServiceContext } from '../service-context.ts'
import { bootTimesByDay, bootTimesOfLastDay } from './boot-times.ts'

const recentBootsMax = 10

/** Throws `not_found`. */
export async function getFarmOverview(context: ServiceContext, farmId: string): Promise<FarmOverview> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const farm = await db.farm.findUnique({
    where: { organizationId_id: { organizationId, id: farmId } },
    select: { id: true, name: true, createdAt: true, revision: true },
  })
  if (!farm) throw new AppError('not_found')
  const counts = await countRows(context, farmId)
  const siteIds = await readSiteIds(context, farmId)
  const recentBoots = await readNewestBoots(context, {
    where: { AND: [{ siteId: { in: siteIds } }, await visibleBoots(context)] },
    before: null,
    limit: recentBootsMax,
  })
  const last24Hours = await bootTimesOfLastDay(context, siteIds)
  const byDay = await bootTimesByDay(context, siteIds)
  const now = clock()
  return {
    farm: { ...farm, createdAt: farm.createdAt.toISOString() },
    counts,
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
): Promise<FarmOverview['counts']> {
  const { organizationId } = actor
  const ofSites = { organizationId, site: { farmId } }
  // One after the other: a transaction is one connection.
  return {
    sites: await db.site.count({ where: { organizationId, farmId, AND: [visibleSites(actor)] } }),
    edges: await db.edge.count({ where: { ...ofSites, revokedAt: null, AND: [visibleEdges(actor)] } }),
    edgesOnline: await db.edge.count({
      where: { ...ofSites, ...onlineEdgeFilter(clock()), AND: [visibleEdges(actor)] },
    }),
    collections: await db.collection.count({ where: { ...ofSites, AND: [visibleCollections(actor)] } }),
    devices: await db.device.count({ where: { ...ofSites, AND: [visibleDevices(actor)] } }),
    devicesBooting: await db.device.count({
      where: { ...ofSites, lastBootId: { not: null }, lastBootOutcome: null, AND: [visibleDevices(actor)] },
    }),
    vdisks: await db.vdisk.count({ where: { organizationId, farmId } }),
  }
}
