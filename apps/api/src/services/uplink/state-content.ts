import { type DesiredState, ignoredMacsMax, powerOnsMax, powerOrdersMax } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../service-context.ts'
import type { AuthenticatedEdge } from './authenticate-edge.ts'
import { readSiteEdges } from './site-edges.ts'
import { readSiteFacts } from './site-facts.ts'
import { readSiteMenus, stateMenuOf, versionOfMenu } from './site-menus.ts'
import { readSiteSchedules } from './site-schedules.ts'

/** A desired state without what its signing adds. */
export type StateContent = Omit<DesiredState, 'counter' | 'issuedUnixMs'>

const versionSelect = {
  id: true,
  number: true,
  sizeBytes: true,
  diskPath: true,
  kernelPath: true,
  initrdPath: true,
  commandLine: true,
} as const

/**
 * What the edge's site wants now: vDisks of its collections, its devices and the menus they show with all their versions, newest first (running devices may still
 * be on an older one), its devices, and the power-ons and power orders that have not expired, the oldest
 * of them where there are more than an edge takes.
 */
export async function readStateContent(
  db: DbOrTransaction,
  edge: AuthenticatedEdge,
  now: Date,
): Promise<StateContent> {
  const { organizationId, edgeId, siteId } = edge
  // One after the other: a transaction is one connection.
  const site = await readSiteFacts(db, edge, now)
  const menuRows = site.hasMenus ? await readSiteMenus(db, { organizationId, siteId }) : []
  const vdisks = await readVdisks(db, { organizationId, siteId }, { ...site, menus: menuRows })
  const newestVersionOf = new Map(vdisks.map((vdisk) => [vdisk.id, vdisk.versions[0]?.id]))
  const menus = new Map(
    menuRows.flatMap((row) => {
      const menu = stateMenuOf(row, newestVersionOf)
      return menu ? [[menu.id, menu] as const] : []
    }),
  )
  const devices = await db.device.findMany({
    where: { organizationId, siteId },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    select: {
      ...{ id: true, name: true, mac: true, enabled: true, bootProgramSet: true },
      ...{ bootMenuChoice: true, bootMenuId: true, collectionId: true, tags: true },
      vdiskId: true,
      collection: { select: { vdiskId: true, bootProgramSet: true, bootMenuId: true } },
    },
  })
  const ignored = !site.hasIgnored
    ? []
    : await db.discoveredDevice.findMany({
        where: { organizationId, siteId, ignoredAt: { not: null } },
        orderBy: { mac: 'asc' },
        take: ignoredMacsMax,
        select: { mac: true },
      })
  const siteEdges = site.hasOtherEdges ? await readSiteEdges(db, { organizationId, siteId }) : undefined
  const powerOns = !site.hasPowerOns
    ? []
    : await db.powerOn.findMany({
        where: { organizationId, expiresAt: { gt: now }, device: { siteId } },
        orderBy: [{ requestedAt: 'asc' }, { id: 'asc' }],
        take: powerOnsMax,
        select: { id: true, deviceId: true, device: { select: { mac: true } } },
      })
  const powerOrders = !site.hasPowerOrders
    ? []
    : await db.powerOrder.findMany({
        where: { organizationId, expiresAt: { gt: now }, takenAt: null, device: { siteId } },
        orderBy: [{ requestedAt: 'asc' }, { id: 'asc' }],
        take: powerOrdersMax,
        select: { id: true, deviceId: true, order: true, device: { select: { mac: true } } },
      })
  // A device without a version to boot is not the edge's business yet.
  const listed = devices.flatMap((device) => {
    const { id, name, mac, enabled, collection } = device
    const menu = menus.get(menuIdOf(device, collection) ?? '')
    const versionId = newestVersionOf.get(device.vdiskId ?? collection.vdiskId ?? '') ?? versionOfMenu(menu)
    const ownSet = device.bootProgramSet ?? collection.bootProgramSet ?? site.bootProgramSet
    const differs = ownSet !== null && ownSet !== site.bootProgramSet
    if (!versionId) return []
    const carried = {
      ...{ id, name, mac, enabled, versionId },
      ...(differs ? { bootProgramSet: ownSet } : {}),
      ...(menu ? { menuId: menu.id } : {}),
    }
    return [{ device, carried }]
  })
  const schedules = !site.hasSchedules
    ? []
    : await readSiteSchedules(
        db,
        { organizationId, siteId, farmId: site.farmId },
        listed.map(({ device }) => device),
      )
  return {
    schema: 1,
    edgeId,
    organizationId,
    siteId,
    siteName: site.siteName,
    incarnation: site.incarnation,
    unknownDevices: site.unknownDevices,
    vdisks: vdisks.map((vdisk) => ({
      ...vdisk,
      versions: vdisk.versions.map((version) => ({ ...version, sizeBytes: Number(version.sizeBytes) })),
    })),
    devices: listed.map(({ carried }) => carried),
    ...(site.bootProgramSet ? { bootProgramSet: site.bootProgramSet } : {}),
    ...(ignored.length > 0 ? { ignoredMacs: ignored.map(({ mac }) => mac) } : {}),
    ...(menus.size > 0 ? { menus: [...menus.values()] } : {}),
    capture: site.capture,
    ...(site.rotateKey ? { rotateKey: site.rotateKey } : {}),
    ...(siteEdges ? { siteEdges } : {}),
    powerOns: powerOns.map(({ id, deviceId, device }) => ({ id, deviceId, mac: device.mac })),
    powerOrders: powerOrders.map(({ id, deviceId, order, device }) => ({
      id,
      deviceId,
      mac: device.mac,
      order,
    })),
    ...(schedules.length > 0 ? { schedules } : {}),
  }
}

/** Those of collections come first: a device that is not registered gets the first one where the site lets it boot. */
async function readVdisks(
  db: DbOrTransaction,
  { organizationId, siteId }: { organizationId: string; siteId: string },
  { menus, hasOwnVdisks }: { menus: Awaited<ReturnType<typeof readSiteMenus>>; hasOwnVdisks: boolean },
) {
  const orderBy = [{ createdAt: 'asc' as const }, { id: 'asc' as const }]
  const select = {
    id: true,
    name: true,
    versions: { orderBy: { number: 'desc' as const }, select: versionSelect },
  }
  const ofCollections = await db.vdisk.findMany({
    where: { organizationId, collections: { some: { organizationId, siteId } } },
    ...{ orderBy, select },
  })
  const ofDevices = !hasOwnVdisks
    ? []
    : await db.device.findMany({
        where: { organizationId, siteId, vdiskId: { not: null } },
        distinct: ['vdiskId'],
        select: { vdiskId: true },
      })
  const known = new Set(ofCollections.map(({ id }) => id))
  const named = [
    ...ofDevices.flatMap(({ vdiskId }) => vdiskId ?? []),
    ...menus.flatMap(({ entries }) => entries.flatMap(({ vdiskId }) => vdiskId ?? [])),
  ]
  const missing = named.filter((id) => !known.has(id))
  if (missing.length === 0) return ofCollections
  const ofOthers = await db.vdisk.findMany({
    where: { organizationId, id: { in: missing } },
    ...{ orderBy, select },
  })
  return [...ofCollections, ...ofOthers]
}

function menuIdOf(
  own: { bootMenuChoice: 'collection' | 'none' | 'own'; bootMenuId: string | null },
  collection: { bootMenuId: string | null },
): string | null {
  return { collection: collection.bootMenuId, none: null, own: own.bootMenuId }[own.bootMenuChoice]
}
