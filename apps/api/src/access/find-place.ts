import { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../context/service-context.ts'
import type { Place, PlaceKind } from '../rules/place.ts'
import { liveRollout, liveSchedule, ofLiveSite } from './visible.ts'

interface Asked {
  organizationId: string
  ids: string[]
}
type PlacesById = Map<string, Place>
type Find = (db: DbOrTransaction, asked: Asked) => Promise<PlacesById>

const ofSite = { siteId: true, site: { select: { farmId: true } } } as const

/**
 * Returns the places of the organization's objects with these ids, by id; objects that are absent or of another
 * organization are left out.
 */
export function findPlaces(db: DbOrTransaction, kind: PlaceKind, asked: Asked): Promise<PlacesById> {
  return finders[kind](db, asked)
}

const finders: Record<PlaceKind, Find> = {
  async farm(db, asked) {
    const rows = await db.farm.findMany({ where: whereOf(asked), select: { id: true } })
    return byId(rows, ({ id }) => ({ farmId: id, siteId: null, collectionId: null }))
  },
  async site(db, asked) {
    const rows = await db.site.findMany({ where: whereOf(asked), select: { id: true, farmId: true } })
    return byId(rows, ({ id, farmId }) => ({ farmId, siteId: id, collectionId: null }))
  },
  async edge(db, asked) {
    const rows = await db.edge.findMany({
      where: { ...whereOf(asked), ...ofLiveSite },
      select: { id: true, ...ofSite },
    })
    return byId(rows, placeInSite)
  },
  async collection(db, asked) {
    const rows = await db.collection.findMany({ where: whereOf(asked), select: { id: true, ...ofSite } })
    return byId(rows, (row) => ({ ...placeInSite(row), collectionId: row.id }))
  },
  async device(db, asked) {
    const select = { id: true, collectionId: true, ...ofSite } as const
    const rows = await db.device.findMany({ where: whereOf(asked), select })
    return byId(rows, (row) => ({ ...placeInSite(row), collectionId: row.collectionId }))
  },
  /** The device's current place; a device in the trash has none. */
  async boot(db, { organizationId, ids }) {
    const rows = await db.$queryRaw<(Place & { id: string })[]>`
      select key.boot_id::text as id, site.farm_id::text as "farmId", site.id::text as "siteId",
        device.collection_id::text as "collectionId"
      from boot_key as key join boot on boot.organization_id = key.organization_id and boot.id = key.boot_id
        and boot.received_on = key.received_on
      join site on site.organization_id = boot.organization_id and site.id = boot.site_id
      left join device on device.organization_id = boot.organization_id and device.id = boot.device_id
      where key.organization_id = ${organizationId}::uuid and key.boot_id = any(${ids}::uuid[])`
    return byId(rows, ({ farmId, siteId, collectionId }) => ({ farmId, siteId, collectionId }))
  },
  async vdisk(db, asked) {
    const rows = await db.vdisk.findMany({ where: whereOf(asked), select: { id: true, farmId: true } })
    return byId(rows, placeInFarm)
  },
  async version(db, asked) {
    const select = { id: true, vdisk: { select: { farmId: true } } } as const
    const rows = await db.vdiskVersion.findMany({ where: whereOf(asked), select })
    return byId(rows, ({ vdisk }) => placeInFarm(vdisk))
  },
  async boot_menu(db, asked) {
    const rows = await db.bootMenu.findMany({ where: whereOf(asked), select: { id: true, farmId: true } })
    return byId(rows, placeInFarm)
  },
  async schedule(db, asked) {
    const select = { id: true, farmId: true, siteId: true } as const
    const rows = await db.schedule.findMany({ where: { ...whereOf(asked), ...liveSchedule }, select })
    return byId(rows, ({ farmId, siteId }) => ({ farmId, siteId, collectionId: null }))
  },
  async schedule_run(db, asked) {
    const select = { id: true, schedule: { select: { farmId: true, siteId: true } } } as const
    const rows = await db.scheduleRun.findMany({
      where: { ...whereOf(asked), schedule: liveSchedule },
      select,
    })
    return byId(rows, ({ schedule }) => ({ ...schedule, collectionId: null }))
  },
  async finding(db, asked) {
    const rows = await db.finding.findMany({
      where: { ...whereOf(asked), ...ofLiveSite },
      select: { id: true, ...ofSite },
    })
    return byId(rows, placeInSite)
  },
  async rollout(db, asked) {
    const select = { id: true, farmId: true } as const
    const rows = await db.rollout.findMany({ where: { ...whereOf(asked), ...liveRollout }, select })
    return byId(rows, placeInFarm)
  },
  async experiment(db, asked) {
    const rows = await db.experiment.findMany({
      where: { ...whereOf(asked), ...ofLiveSite },
      select: { id: true, ...ofSite },
    })
    return byId(rows, placeInSite)
  },
  async alert(db, asked) {
    const select = { id: true, collectionId: true, ...ofSite } as const
    const rows = await db.alert.findMany({ where: { ...whereOf(asked), ...ofLiveSite }, select })
    return byId(rows, (row) => ({ ...placeInSite(row), collectionId: row.collectionId }))
  },
  async store(db, asked) {
    const rows = await db.store.findMany({ where: whereOf(asked), select: { id: true, farmId: true } })
    return byId(rows, placeInFarm)
  },
  /** The place of the edge that runs the job. */
  async store_job(db, asked) {
    const select = { id: true, edge: { select: ofSite } } as const
    const rows = await db.storeJob.findMany({ where: { ...whereOf(asked), edge: ofLiveSite }, select })
    return byId(rows, ({ edge }) => placeInSite(edge))
  },
  /** Where that lay which it deleted. */
  async deletion(db, asked) {
    const select = { id: true, farmId: true, siteId: true, collectionId: true } as const
    const rows = await db.deletion.findMany({ where: whereOf(asked), select })
    return byId(rows, ({ id: _id, ...place }) => place)
  },
}

function whereOf({ organizationId, ids }: Asked) {
  return { organizationId, id: { in: ids } }
}

function byId<Row extends { id: string }>(rows: Row[], placeOf: (row: Row) => Place): PlacesById {
  return new Map(rows.map((row) => [row.id, placeOf(row)]))
}

function placeInSite({ siteId, site }: { siteId: string; site: { farmId: string } }): Place {
  return { farmId: site.farmId, siteId, collectionId: null }
}

function placeInFarm({ farmId }: { farmId: string }): Place {
  return { farmId, siteId: null, collectionId: null }
}

/** The tables of each kind, and its name for people. */
export const objectKinds = {
  farm: { table: Prisma.sql`farm`, noun: 'farm' },
  site: { table: Prisma.sql`site`, noun: 'site' },
  collection: { table: Prisma.sql`collection`, noun: 'collection' },
  device: { table: Prisma.sql`device`, noun: 'device' },
  edge: { table: Prisma.sql`edge`, noun: 'edge' },
  vdisk: { table: Prisma.sql`vdisk`, noun: 'vDisk' },
  version: { table: Prisma.sql`vdisk_version`, noun: 'version' },
  store: { table: Prisma.sql`store`, noun: 'store' },
  boot_menu: { table: Prisma.sql`boot_menu`, noun: 'boot menu' },
  schedule: { table: Prisma.sql`schedule`, noun: 'schedule' },
} as const satisfies Partial<Record<PlaceKind, { table: Prisma.Sql; noun: string }>>
