import { type BootMenu, type DesiredState, ignoredMacsMax, powerOnsMax, powerOrdersMax } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, DbOrTransaction } from '../../context/service-context.ts'
import { type KeyPolicy, keyPolicyDefault } from '../../rules/device/device-key.ts'
import { versionFor, writes } from '../../rules/device/version-access.ts'
import type { DeviceType } from '../../rules/object-fields.ts'
import { readDeviceHomes, type WritingDevice } from './device-homes.ts'
import { readSiteEdges, ticketKeysChangeMs } from './site-edges.ts'
import { readSiteFacts } from './site-facts.ts'
import { readSiteMenus, stateMenuOf, versionOfMenu, versionsOfMenu } from './site-menus.ts'
import { readSiteSchedules } from './site-schedules.ts'
import { readSiteTrials, Tunings } from './site-trials.ts'
import { readSiteVdisks } from './site-vdisks.ts'
import { readKeptDifferences, readStoreJobs } from './store-orders.ts'

/** A desired state without the fields that signing adds, and with its keys in clear text. */
export type StateContent = Omit<DesiredState, 'counter' | 'issuedUnixMs' | 'sealed'>

export type ReadState = {
  content: StateContent
  /** The key to which the content's keys are sealed; null: the edge takes them in clear text. */
  sealKey: string | null
  /** The first instant from which on the same rows make another content; null: none. */
  changesAt: Date | null
}

/**
 * Returns what the edge's site should do now: vDisks of its collections, and of its devices and their menus, with all
 * their versions; the version that production devices boot next (running devices may still use another one); its
 * devices; the jobs of the edge's store; and the power-ons and power orders that have not expired, the oldest ones if
 * there are more than an edge accepts.
 */
export async function readStateContent(db: DbOrTransaction, edge: AuthenticatedEdge, now: Date): Promise<ReadState> {
  const { organizationId, edgeId, siteId } = edge
  // Sequential, because a transaction has one connection.
  const site = await readSiteFacts(db, edge, now)
  const menuRows = site.hasMenus ? await readSiteMenus(db, { organizationId, siteId }) : []
  const vdisks = await readSiteVdisks(db, { organizationId, siteId, now }, { ...site, menus: menuRows })
  const bootedVersionOf = new Map(vdisks.map(({ id, resolved }) => [id, resolved.production?.id]))
  const menus = new Map(
    menuRows.flatMap((row) => {
      const menu = stateMenuOf(row, bootedVersionOf)
      return menu ? [[menu.id, menu] as const] : []
    }),
  )
  const ignoredMacs = site.hasIgnored ? await readIgnoredMacs(db, edge) : []
  const siteEdges = site.hasOtherEdges ? await readSiteEdges(db, { organizationId, siteId }, now) : undefined
  const tunings = new Tunings()
  const { listed, homeEdges, keyPolicies } = await listDevices(db, edge, { now, site, menus, vdisks, tunings })
  const storeJobs = site.hasStoreJobs ? await readStoreJobs(db, edge) : []
  const keptDifferences = site.hasDifferences ? await readKeptDifferences(db, edge) : []
  const devices = listed.map(({ device }) => device)
  const place = { organizationId, siteId, farmId: site.farmId }
  const schedules = site.hasSchedules ? await readSiteSchedules(db, place, devices) : []
  const { trials, endsAt } = site.hasTrials ? await readSiteTrials(db, edge, { now, devices, tunings }) : noTrials
  const powerOns = site.hasPowerOns ? await readPowerOns(db, edge, now) : []
  const powerOrders = site.hasPowerOrders ? await readPowerOrders(db, edge, now) : []
  const content: StateContent = {
    schema: 1,
    edgeId,
    organizationId,
    siteId,
    siteName: site.siteName,
    incarnation: site.incarnation,
    unknownDevices: site.unknownDevices,
    vdisks: vdisks.map(({ stated }) => stated),
    devices: listed.map(({ carried }) => carried),
    ...choicesOf(site),
    ...(ignoredMacs.length > 0 ? { ignoredMacs } : {}),
    ...(menus.size > 0 ? { menus: [...menus.values()] } : {}),
    capture: site.capture,
    ...(siteEdges ? { siteEdges } : {}),
    ...(homeEdges.length > 0 ? { homeEdges } : {}),
    ...(keyPolicies.length > 0 ? { keyPolicies } : {}),
    ...(tunings.all.length > 0 ? { tunings: tunings.all } : {}),
    ...(trials.length > 0 ? { trials } : {}),
    powerOns: powerOns.map(({ id, deviceId, device: { mac } }) => ({ id, deviceId, mac })),
    powerOrders: powerOrders.map(({ id, deviceId, order, device: { mac } }) => ({ id, deviceId, mac, order })),
    ...(storeJobs.length > 0 ? { storeJobs } : {}),
    ...(keptDifferences.length > 0 ? { keptDifferences } : {}),
    ...(schedules.length > 0 ? { schedules } : {}),
  }
  const changesMs = [
    ...[...powerOns, ...powerOrders].map(({ expiresAt }) => expiresAt.getTime()),
    ...vdisks.flatMap(({ resolved }) => resolved.pending?.at.getTime() ?? []),
    ...(siteEdges ? [ticketKeysChangeMs(now)] : []),
    ...(endsAt ? [endsAt.getTime()] : []),
  ]
  const changesAt = changesMs.length > 0 ? new Date(Math.min(...changesMs)) : null
  return { content, sealKey: site.sealKey, changesAt }
}

const noTrials: Awaited<ReturnType<typeof readSiteTrials>> = { trials: [], endsAt: null }

type Choices = Pick<StateContent, 'bootProgramSet' | 'cacheCopyHours' | 'rotateKey' | 'release'>

/** What somebody has chosen for the site or ordered of the edge; absent if nobody has. */
function choicesOf(site: Siting['site']): Choices {
  return {
    ...(site.bootProgramSet ? { bootProgramSet: site.bootProgramSet } : {}),
    ...(site.cacheCopyHours > 0 ? { cacheCopyHours: site.cacheCopyHours } : {}),
    ...(site.rotateKey ? { rotateKey: site.rotateKey } : {}),
    ...(site.release ? { release: { version: site.release, attempt: site.releaseAttempt } } : {}),
  }
}

function menuIdOf(
  own: { bootMenuChoice: 'collection' | 'none' | 'own'; bootMenuId: string | null },
  collection: { bootMenuId: string | null },
): string | null {
  return { collection: collection.bootMenuId, none: null, own: own.bootMenuId }[own.bootMenuChoice]
}

interface Siting {
  now: Date
  site: Awaited<ReturnType<typeof readSiteFacts>>
  menus: Map<string, BootMenu>
  vdisks: Awaited<ReturnType<typeof readSiteVdisks>>
  tunings: Tunings
}

/** Returns the site's devices for the edge's state, and the edges that keep their writes. */
async function listDevices(
  db: DbOrTransaction,
  edge: AuthenticatedEdge,
  { now, site, menus, vdisks, tunings }: Siting,
) {
  const resolvedOf = new Map(vdisks.map(({ id, resolved }) => [id, resolved]))
  const keeping = new Set(
    vdisks.flatMap(({ keepsWrites, stated }) => (keepsWrites ? stated.versions.map(({ id }) => id) : [])),
  )
  const devices = await readDevices(db, edge)
  const writing: WritingDevice[] = []
  const keyPolicies: KeyPolicy[] = []
  // A device without a version to boot does not concern the edge yet.
  const booting = devices.flatMap((device) => {
    const { id, name, mac, enabled, collection } = device
    const menu = menus.get(menuIdOf(device, collection) ?? '')
    const resolved = resolvedOf.get(device.vdiskId ?? collection.vdiskId ?? '')
    const versionId = (resolved && versionFor(resolved, device)?.id) ?? versionOfMenu(menu)
    const ownSet = device.bootProgramSet ?? collection.bootProgramSet ?? site.bootProgramSet
    const differs = ownSet !== null && ownSet !== site.bootProgramSet
    if (!versionId) return []
    const tuning = tunings.indexOf(collection.bootSettings)
    const carried = {
      id,
      name,
      mac,
      enabled,
      versionId,
      ...(device.deviceType === 'production' ? {} : { deviceType: device.deviceType }),
      ...(differs ? { bootProgramSet: ownSet } : {}),
      ...(menu ? { menuId: menu.id } : {}),
      ...keyFieldsOf(device, keyPolicies),
      ...(tuning === null ? {} : { tuning }),
    }
    const isWriter = resolved !== undefined && writes(resolved, device)
    const bootable = [versionId, ...versionsOfMenu(menu)]
    const above = isWriter ? (resolved.maintenance?.parentVersionId ?? []) : []
    if (isWriter || bootable.some((one) => keeping.has(one)))
      writing.push({ ...device, versionIds: bootable.concat(above) })
    return [{ device, carried, isWriter }]
  })
  const homes = await readDeviceHomes(db, edge, { devices: writing, now })
  const isWriting = new Set(writing.map(({ id }) => id))
  const listed = booting.flatMap(({ device, carried, isWriter }) => {
    const home = homes.indexOf(device.id)
    if (home === null) return isWriting.has(device.id) ? [] : [{ device, carried }]
    const isHome = homes.edges[home]?.id === edge.edgeId
    return [{ device, carried: { ...carried, ...(isWriter && isHome ? { writes: true } : {}), home } }]
  })
  return { listed, homeEdges: homes.edges, keyPolicies }
}

interface KeyColumns {
  key: string | null
  keyless: boolean
  keyRevision: number
  collection: { keyLearn: KeyPolicy['learn']; keyWithout: KeyPolicy['without'] }
}

/** @param policies those of the devices before; the device's is added if it is new */
function keyFieldsOf({ key, keyless, keyRevision, collection }: KeyColumns, policies: KeyPolicy[]) {
  const { keyLearn: learn, keyWithout: without } = collection
  const isDefault = learn === keyPolicyDefault.learn && without === keyPolicyDefault.without
  const known = policies.findIndex((policy) => policy.learn === learn && policy.without === without)
  if (!isDefault && known < 0) policies.push({ learn, without })
  return {
    ...(isDefault ? {} : { keyPolicy: known < 0 ? policies.length - 1 : known }),
    ...(key ? { key } : {}),
    ...(keyless ? { keyless: true as const } : {}),
    ...(keyRevision > 0 ? { keyRevision } : {}),
  }
}

type Site = Pick<AuthenticatedEdge, 'organizationId' | 'siteId'>

/** As PostgreSQL gives it: what is null in the database is absent. */
interface DeviceJson {
  id: string
  name: string
  mac: string
  enabled: boolean
  deviceType: DeviceType
  bootMenuChoice: 'collection' | 'none' | 'own'
  bootMenuId?: string
  bootProgramSet?: string
  vdiskId?: string
  tags: string[]
  homeEdgeId?: string
  nextHomeEdgeId?: string
  layerEdgeId?: string
  /** SHA-256 of its key in base64. */
  key?: string
  keyless: boolean
  keyRevision: number
  collectionId: string
}

/** Reads the devices as one text: thousands of rows of many columns would take much longer to take apart. */
async function readDevices(db: DbOrTransaction, { organizationId, siteId }: Site) {
  const [row] = await db.$queryRaw<{ devices: string }[]>`
    select coalesce(json_agg(json_object('id': d.id, 'name': d.name, 'mac': d.mac, 'enabled': d.enabled,
        'deviceType': d.device_type, 'bootMenuChoice': d.boot_menu_choice, 'bootMenuId': d.boot_menu_id,
        'bootProgramSet': d.boot_program_set, 'vdiskId': d.vdisk_id, 'tags': d.tags, 'homeEdgeId': d.home_edge_id,
        'nextHomeEdgeId': d.next_home_edge_id, 'layerEdgeId': d.layer_edge_id, 'key': encode(d.key_sha256, 'base64'),
        'keyless': d.keyless, 'keyRevision': d.key_revision, 'collectionId': d.collection_id absent on null)
      order by d.name, d.id), '[]')::text as devices
    from device as d where d.organization_id = ${organizationId}::uuid and d.site_id = ${siteId}::uuid`
  const collections = await db.collection.findMany({
    where: { organizationId, siteId },
    select: {
      id: true,
      vdiskId: true,
      bootProgramSet: true,
      bootMenuId: true,
      keyLearn: true,
      keyWithout: true,
      bootSettings: true,
    },
  })
  const collectionOf = new Map(collections.map((collection) => [collection.id, collection]))
  const devices: DeviceJson[] = JSON.parse(row?.devices ?? '[]')
  return devices.flatMap((device) => {
    const collection = collectionOf.get(device.collectionId)
    const { bootMenuId = null, bootProgramSet = null, vdiskId = null } = device
    const { homeEdgeId = null, nextHomeEdgeId = null, layerEdgeId = null, key = null } = device
    const read = { ...device, bootMenuId, bootProgramSet, vdiskId, homeEdgeId, nextHomeEdgeId, layerEdgeId, key }
    return collection ? [{ ...read, collection }] : []
  })
}

async function readIgnoredMacs(db: DbOrTransaction, { organizationId, siteId }: Site): Promise<string[]> {
  const ignored = await db.discoveredDevice.findMany({
    where: { organizationId, siteId, ignoredAt: { not: null } },
    orderBy: { mac: 'asc' },
    take: ignoredMacsMax,
    select: { mac: true },
  })
  return ignored.map(({ mac }) => mac)
}

function readPowerOns(db: DbOrTransaction, { organizationId, siteId }: Site, now: Date) {
  return db.powerOn.findMany({
    where: { organizationId, expiresAt: { gt: now }, device: { siteId } },
    orderBy: [{ requestedAt: 'asc' }, { id: 'asc' }],
    take: powerOnsMax,
    select: { id: true, deviceId: true, expiresAt: true, device: { select: { mac: true } } },
  })
}

function readPowerOrders(db: DbOrTransaction, { organizationId, siteId }: Site, now: Date) {
  return db.powerOrder.findMany({
    where: { organizationId, expiresAt: { gt: now }, takenAt: null, device: { siteId } },
    orderBy: [{ requestedAt: 'asc' }, { id: 'asc' }],
    take: powerOrdersMax,
    select: { id: true, deviceId: true, order: true, expiresAt: true, device: { select: { mac: true } } },
  })
}
