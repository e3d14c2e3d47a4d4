import { Prisma } from '@bootfarm/db'
import { type DbOrTransaction, withTrash } from '../context/service-context.ts'
import { type Actor, scopesOf } from '../rules/actor.ts'
import type { Permission } from '../rules/permissions.ts'
import { covers, organizationPlace } from '../rules/place.ts'

interface ScopedContext {
  db: DbOrTransaction
  actor: Actor
}

/** The most values that a statement can take beside its others. */
const devicesMax = 30_000

/** The ids that bound what the actor may see; null where that is the whole organization. */
interface Bounds {
  farmIds: string[]
  siteIds: string[]
  collectionIds: string[]
  /** Farms and sites that hold something the actor may see. */
  farmIdsAbove: string[]
  siteIdsAbove: string[]
}

function boundsOf(actor: Actor, permission: Permission): Bounds | null {
  const scopes = scopesOf(actor, permission)
  if (scopes.some((scope) => covers(scope, organizationPlace))) return null
  const ids = (values: (string | null)[]) => [...new Set(values.flatMap((id) => id ?? []))]
  return {
    farmIds: ids(scopes.map(({ farmId, siteId }) => (siteId ? null : farmId))),
    siteIds: ids(scopes.map(({ siteId, collectionId }) => (collectionId ? null : siteId))),
    collectionIds: ids(scopes.map(({ collectionId }) => collectionId)),
    farmIdsAbove: ids(scopes.map(({ farmId }) => farmId)),
    siteIdsAbove: ids(scopes.map(({ siteId }) => siteId)),
  }
}

/** Returns whether nothing of the farm is hidden from the actor, as far as this permission goes. */
export function seesWholeFarm(actor: Actor, permission: Permission, farmId: string): boolean {
  const bounds = boundsOf(actor, permission)
  return bounds === null || bounds.farmIds.includes(farmId)
}

/** Edges are not deleted themselves: with their site they are out of sight. */
export const ofLiveSite = { site: { deletionId: null } }

// Each of these is a `where` for lists: the part of the organization that the actor may see. `{}` is all of it.

export function visibleFarms(actor: Actor): Prisma.FarmWhereInput {
  const bounds = boundsOf(actor, 'farm.read')
  return bounds ? { id: { in: bounds.farmIdsAbove } } : {}
}

export function visibleSites(actor: Actor): Prisma.SiteWhereInput {
  const bounds = boundsOf(actor, 'site.read')
  return bounds ? { OR: [{ farmId: { in: bounds.farmIds } }, { id: { in: bounds.siteIdsAbove } }] } : {}
}

export function visibleCollections(actor: Actor): Prisma.CollectionWhereInput {
  const bounds = boundsOf(actor, 'collection.read')
  return bounds ? { OR: [...ofSites(bounds), { id: { in: bounds.collectionIds } }] } : {}
}

export function visibleDevices(actor: Actor): Prisma.DeviceWhereInput {
  const bounds = boundsOf(actor, 'device.read')
  return bounds ? { OR: [...ofSites(bounds), { collectionId: { in: bounds.collectionIds } }] } : {}
}

/** Returns whether no device is hidden from the actor. */
export function seesAllDevices(actor: Actor): boolean {
  return boundsOf(actor, 'device.read') === null
}

/** The same as `visibleDevices`, as a condition on `device` in a statement, also by another permission. */
export function visibleDevicesSql(actor: Actor, permission: Permission = 'device.read'): Prisma.Sql {
  const bounds = boundsOf(actor, permission)
  if (!bounds) return Prisma.sql`true`
  return Prisma.sql`(device.site_id = any(${bounds.siteIds}::uuid[])
    or device.collection_id = any(${bounds.collectionIds}::uuid[])
    or exists (select from site where site.organization_id = device.organization_id and site.id = device.site_id
      and site.farm_id = any(${bounds.farmIds}::uuid[])))`
}

/** Objects that have keys by which people search for them. */
export type KeyedKind = 'device' | 'vdisk' | 'version' | 'site' | 'edge' | 'collection'

/** Whether the actor may see the object of a row of `search_key`, as a condition in a statement on that. */
export function visibleKeysSql(actor: Actor, kind: KeyedKind): Prisma.Sql {
  const bounds = boundsOf(actor, kind === 'version' ? 'vdisk.read' : `${kind}.read`)
  if (kind === 'edge') return visibleEdgeKeys(bounds)
  if (!bounds) return Prisma.sql`true`
  const { farmIds, siteIds, collectionIds, farmIdsAbove, siteIdsAbove } = bounds
  const own = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  const siteIn = (table: Prisma.Sql) => Prisma.sql`${table}.site_id in (select id from site
    where ${own} and farm_id = any(${farmIds}::uuid[]))`
  switch (kind) {
    case 'device':
      // Read from the places, not for each key: a person of one site sees few of the devices that begin alike.
      return Prisma.sql`search_key.object_id in (
        select id from device where ${own} and site_id = any(${siteIds}::uuid[])
        union all select id from device where ${own} and collection_id = any(${collectionIds}::uuid[])
        union all select id from device where ${own} and ${siteIn(Prisma.sql`device`)})`
    case 'collection':
      return Prisma.sql`exists (select from collection where ${ofKey(Prisma.sql`collection`)}
        and (collection.id = any(${collectionIds}::uuid[]) or collection.site_id = any(${siteIds}::uuid[])
          or ${siteIn(Prisma.sql`collection`)}))`
    case 'site':
      return Prisma.sql`exists (select from site where ${ofKey(Prisma.sql`site`)}
        and (site.id = any(${siteIdsAbove}::uuid[]) or site.farm_id = any(${farmIds}::uuid[])))`
    case 'vdisk':
      return Prisma.sql`exists (select from vdisk where ${ofKey(Prisma.sql`vdisk`)}
        and vdisk.farm_id = any(${farmIdsAbove}::uuid[]))`
    case 'version':
      return Prisma.sql`exists (select from vdisk_version as version join vdisk
          on vdisk.organization_id = version.organization_id and vdisk.id = version.vdisk_id
        where ${ofKey(Prisma.sql`version`)} and vdisk.farm_id = any(${farmIdsAbove}::uuid[]))`
  }
}

/** Edges have keys while their site is in the trash: they are not deleted themselves. */
function visibleEdgeKeys(bounds: Bounds | null): Prisma.Sql {
  const inBounds = bounds
    ? Prisma.sql`(site.id = any(${bounds.siteIdsAbove}::uuid[]) or site.farm_id = any(${bounds.farmIds}::uuid[]))`
    : Prisma.sql`true`
  return Prisma.sql`exists (select from edge join site
      on site.organization_id = edge.organization_id and site.id = edge.site_id
    where ${ofKey(Prisma.sql`edge`)} and site.deletion_id is null and ${inBounds})`
}

function ofKey(table: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`${table}.organization_id = search_key.organization_id and ${table}.id = search_key.object_id`
}

/**
 * Whether the actor may open a boot, as a condition in a statement on `boot`, its `site`, and its `device` if it has
 * one: the rule of `may`, for the place that `findPlaces` gives a boot.
 */
export function openBootsSql(actor: Actor): Prisma.Sql {
  const bounds = boundsOf(actor, 'boot.read')
  if (!bounds) return Prisma.sql`true`
  return Prisma.sql`(site.farm_id = any(${bounds.farmIds}::uuid[]) or site.id = any(${bounds.siteIds}::uuid[])
    or device.site_id = boot.site_id and device.collection_id = any(${bounds.collectionIds}::uuid[]))`
}

/** The sites of which the actor may see every boot: figures of a whole site are for them alone. */
export function sitesOfVisibleBoots(actor: Actor): Prisma.SiteWhereInput {
  const bounds = boundsOf(actor, 'boot.read')
  return bounds ? { OR: [{ farmId: { in: bounds.farmIds } }, { id: { in: bounds.siteIds } }] } : {}
}

/** A boot's row names site and device without a relation to them, because it is in a day's partition. */
export async function visibleBoots({ db, actor }: ScopedContext): Promise<Prisma.BootWhereInput> {
  const { organizationId } = actor
  const bounds = boundsOf(actor, 'boot.read')
  const hidden = await bootsOfTrash(db, organizationId)
  if (!bounds) return hidden
  const sites = await db.site.findMany({
    where: { organizationId, AND: [sitesOfVisibleBoots(actor)] },
    select: { id: true },
  })
  const devices = await db.device.findMany({
    where: { organizationId, collectionId: { in: bounds.collectionIds } },
    take: devicesMax,
    select: { id: true },
  })
  return {
    ...hidden,
    OR: [{ siteId: { in: sites.map(({ id }) => id) } }, { deviceId: { in: devices.map(({ id }) => id) } }],
  }
}

/** Leaves out those of sites in the trash; most organizations have none. */
async function bootsOfTrash(db: DbOrTransaction, organizationId: string): Promise<Prisma.BootWhereInput> {
  const where = { organizationId, kind: { in: ['farm', 'site'] } }
  const deletions = await db.deletion.findMany({ where, select: { id: true } })
  if (deletions.length === 0) return {}
  const sites = await withTrash(db, () =>
    db.site.findMany({ where: { organizationId, deletionId: { not: null } }, select: { id: true } }),
  )
  return { siteId: { notIn: sites.map(({ id }) => id) } }
}

/** Edges serve their whole site: who may see a collection sees which edges there are. */
export function visibleEdges(actor: Actor): Prisma.EdgeWhereInput {
  const bounds = boundsOf(actor, 'edge.read')
  return bounds
    ? {
        ...ofLiveSite,
        OR: [{ site: { farmId: { in: bounds.farmIds } } }, { siteId: { in: bounds.siteIdsAbove } }],
      }
    : ofLiveSite
}

/** A discovered device is of no collection yet: it is the site's. */
export function visibleDiscovered(actor: Actor): Prisma.DiscoveredDeviceWhereInput {
  const bounds = boundsOf(actor, 'discovery.read')
  return bounds ? { ...ofLiveSite, OR: ofSites(bounds) } : ofLiveSite
}

/** vDisks and boot menus are the farm's, for all of its sites. */
export function visibleVdisks(actor: Actor): Prisma.VdiskWhereInput {
  const bounds = boundsOf(actor, 'vdisk.read')
  return bounds ? { farmId: { in: bounds.farmIdsAbove } } : {}
}

export function visibleMenus(actor: Actor): Prisma.BootMenuWhereInput {
  const bounds = boundsOf(actor, 'boot_menu.read')
  return bounds ? { farmId: { in: bounds.farmIdsAbove } } : {}
}

/** Rows in the trash are hidden: a schedule whose farm or site is there does not exist. */
export const liveSchedule = {
  farm: { deletionId: null },
  OR: [{ siteId: null }, ofLiveSite],
} satisfies Prisma.ScheduleWhereInput

/** A schedule of all of a farm's sites is seen by who may see all of them. */
export function visibleSchedules(actor: Actor): Prisma.ScheduleWhereInput {
  const bounds = boundsOf(actor, 'schedule.read')
  return bounds ? { OR: [{ farmId: { in: bounds.farmIds } }, { siteId: { in: bounds.siteIds } }] } : {}
}

/** A finding is about all boots of its site: who sees a collection of it does not see them. */
export function visibleFindings(actor: Actor): Prisma.FindingWhereInput {
  const bounds = boundsOf(actor, 'finding.read')
  return bounds ? { ...ofLiveSite, OR: ofSites(bounds) } : ofLiveSite
}

export function visibleExperiments(actor: Actor): Prisma.ExperimentWhereInput {
  const bounds = boundsOf(actor, 'experiment.read')
  return bounds
    ? { ...ofLiveSite, OR: [{ siteId: { in: bounds.siteIds } }, { site: { farmId: { in: bounds.farmIds } } }] }
    : ofLiveSite
}

/** Rows in the trash are hidden: a rollout whose farm is there does not exist. */
export const liveRollout = { farm: { deletionId: null } } satisfies Prisma.RolloutWhereInput

/** A rollout is its farm's: it names sites, and is seen by who may see all of them. */
export function visibleRollouts(actor: Actor): Prisma.RolloutWhereInput {
  const bounds = boundsOf(actor, 'rollout.read')
  return bounds ? { ...liveRollout, farmId: { in: bounds.farmIds } } : liveRollout
}

/**
 * An entry is at the place of its object; entries of the whole organization are visible to roles of the whole
 * organization.
 */
export function visibleAudit(actor: Actor): Prisma.AuditEntryWhereInput {
  return ofPlaceColumns(boundsOf(actor, 'audit.read'))
}

/** An event is at the place where it happened, like an entry of the audit log. */
export function visibleEvents(actor: Actor): Prisma.WebhookEventWhereInput {
  return ofPlaceColumns(boundsOf(actor, 'event.read'))
}

/** An alert is at the site or collection that it is about. */
export function visibleAlerts(actor: Actor): Prisma.AlertWhereInput {
  const bounds = boundsOf(actor, 'alert.read')
  return bounds
    ? { ...ofLiveSite, OR: [...ofSites(bounds), { collectionId: { in: bounds.collectionIds } }] }
    : ofLiveSite
}

/** Stores are the farm's, and no secret to who manages images in a part of it. */
export function visibleStores(actor: Actor): Prisma.StoreWhereInput {
  const bounds = boundsOf(actor, 'store.read')
  return bounds ? { farmId: { in: bounds.farmIds } } : {}
}

/** Work of a store is seen by who sees its edge. */
export function visibleStoreJobs(actor: Actor): Prisma.StoreJobWhereInput {
  return { edge: visibleEdges(actor) }
}

/** Deletions within the actor's places. */
export function visibleDeletions(actor: Actor): Prisma.DeletionWhereInput {
  return ofPlaceColumns(boundsOf(actor, 'trash.read'))
}

function ofPlaceColumns(bounds: Bounds | null) {
  if (!bounds) return {}
  const { farmIds, siteIds, collectionIds } = bounds
  return {
    OR: [{ farmId: { in: farmIds } }, { siteId: { in: siteIds } }, { collectionId: { in: collectionIds } }],
  }
}

function ofSites({ farmIds, siteIds }: Bounds) {
  return [{ site: { farmId: { in: farmIds } } }, { siteId: { in: siteIds } }]
}
