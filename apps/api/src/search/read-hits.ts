import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import {
  type KeyedKind,
  ofLiveSite,
  visibleCollections,
  visibleDevices,
  visibleEdges,
  visibleKeysSql,
  visibleSites,
  visibleVdisks,
} from '../access/visible.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { may } from '../rules/actor.ts'
import type { Place } from '../rules/place.ts'
import type { SearchHit } from './schema.ts'
import type { SearchTerms } from './search-terms.ts'

type Match = SearchHit['match']
type Context = Pick<ServiceContext, 'db' | 'actor'>

/** A hit, with its device's last boot where it is one. */
export interface ReadHit extends SearchHit {
  lastBootId?: string | null
}

const plain = { match: null, vdiskId: null, boot: null }
const siteName = { site: { select: { name: true } } } as const

/** Reads the objects with these ids, in any order: a second time only those that the actor may see. */
export function readHits(
  context: Context,
  kind: KeyedKind,
  { ids, terms }: { ids: string[]; terms: SearchTerms },
): Promise<ReadHit[]> {
  return ids.length === 0 ? Promise.resolve([]) : readers[kind](context, ids, terms)
}

type Reader = (context: Context, ids: string[], terms: SearchTerms) => Promise<ReadHit[]>

const readers: Record<KeyedKind, Reader> = {
  async device({ db, actor }, ids, terms) {
    const rows = await db.device.findMany({
      where: { ...among(actor, ids), AND: [visibleDevices(actor)] },
      select: {
        id: true,
        name: true,
        mac: true,
        tags: true,
        lastBootId: true,
        lastBootIp: true,
        lastBootMachineId: true,
        site: { select: { name: true } },
        collection: { select: { name: true } },
      },
    })
    return rows.map((row) => ({
      ...plain,
      id: row.id,
      name: row.name,
      place: `${row.site.name} · ${row.collection.name}`,
      match: matchOfDevice(row, terms),
      lastBootId: row.lastBootId,
    }))
  },
  async vdisk({ db, actor }, ids, terms) {
    const rows = await db.vdisk.findMany({
      where: { ...among(actor, ids), AND: [visibleVdisks(actor)] },
      select: { id: true, name: true, farm: { select: { name: true } } },
    })
    return rows.map(({ id, name, farm }) => ({
      ...plain,
      id,
      name,
      place: farm.name,
      match: matchOfName(terms, id, name),
    }))
  },
  async version({ db, actor }, ids, terms) {
    const rows = await db.vdiskVersion.findMany({
      where: { ...among(actor, ids), AND: [{ vdisk: visibleVdisks(actor) }] },
      select: {
        id: true,
        number: true,
        labels: true,
        vdisk: { select: { id: true, name: true, farm: { select: { name: true } } } },
      },
    })
    return rows.map(({ id, number, labels, vdisk }) => {
      const label = labels.find((one) => one.toLowerCase().startsWith(terms.text))
      return {
        ...plain,
        id,
        name: `${vdisk.name} version ${number}`,
        place: vdisk.farm.name,
        match: label === undefined ? matchOfId(terms, id) : { field: 'label', value: label },
        vdiskId: vdisk.id,
      }
    })
  },
  async site({ db, actor }, ids, terms) {
    const rows = await db.site.findMany({
      where: { ...among(actor, ids), AND: [visibleSites(actor)] },
      select: { id: true, name: true, farm: { select: { name: true } } },
    })
    return rows.map(({ id, name, farm }) => ({
      ...plain,
      id,
      name,
      place: farm.name,
      match: matchOfName(terms, id, name),
    }))
  },
  async edge({ db, actor }, ids, terms) {
    const rows = await db.edge.findMany({
      where: { ...among(actor, ids), AND: [visibleEdges(actor)] },
      select: { id: true, name: true, heartbeat: true, ...siteName },
    })
    return rows.map(({ id, name, heartbeat, site }) => {
      const ip = addressOf(heartbeat)
      const match: Match =
        terms.ip && ip?.startsWith(terms.ip) ? { field: 'ip', value: ip } : matchOfName(terms, id, name)
      return { ...plain, id, name, place: site.name, match }
    })
  },
  async collection({ db, actor }, ids, terms) {
    const rows = await db.collection.findMany({
      where: { ...among(actor, ids), AND: [visibleCollections(actor)] },
      select: { id: true, name: true, ...siteName },
    })
    return rows.map(({ id, name, site }) => ({
      ...plain,
      id,
      name,
      place: site.name,
      match: matchOfName(terms, id, name),
    }))
  },
}

function among({ organizationId }: ServiceContext['actor'], ids: string[]) {
  return { organizationId, id: { in: ids } }
}

interface DeviceFields {
  id: string
  name: string
  mac: string
  tags: string[]
  lastBootIp: string | null
  lastBootMachineId: string | null
}

function matchOfDevice(device: DeviceFields, terms: SearchTerms): Match {
  const digits = terms.digits ?? terms.text
  if (isInName(device.name, terms.text)) return null
  const macDigits = device.mac.replaceAll(':', '')
  if ([0, 6, 8].some((from) => macDigits.startsWith(digits, from))) return { field: 'mac', value: device.mac }
  if (device.lastBootIp?.startsWith(terms.text)) return { field: 'ip', value: device.lastBootIp }
  if (device.lastBootMachineId?.replaceAll('-', '').startsWith(digits))
    return { field: 'machineId', value: device.lastBootMachineId }
  const tag = device.tags.find((one) => one.toLowerCase().startsWith(terms.text))
  return tag === undefined ? matchOfId(terms, device.id) : { field: 'tag', value: tag }
}

function matchOfName(terms: SearchTerms, id: string, name: string): Match {
  return isInName(name, terms.text) ? null : matchOfId(terms, id)
}

function isInName(name: string, text: string): boolean {
  return name.toLowerCase().includes(text)
}

function matchOfId({ ids }: SearchTerms, id: string): Match {
  return ids && id >= ids.from && id <= ids.until ? { field: 'id', value: id } : null
}

function addressOf(heartbeat: unknown): string | null {
  const address = typeof heartbeat === 'object' && heartbeat !== null ? Reflect.get(heartbeat, 'address') : null
  return typeof address === 'string' ? address : null
}

/** Ids of edges whose address begins with this; an organization has few enough to look at each. */
export async function findEdgesByAddress(
  { db, actor }: Context,
  { ip, take }: { ip: string; take: number },
): Promise<string[]> {
  const rows = await db.edge.findMany({
    where: {
      organizationId: actor.organizationId,
      AND: [visibleEdges(actor), ofLiveSite, { heartbeat: { path: ['address'], string_starts_with: ip } }],
    },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take,
    select: { id: true },
  })
  return rows.map(({ id }) => id)
}

/** Its name and six later words, each of which may begin so. */
const keysOfVdiskMax = 7

/** Ids of versions of this number, of vDisks whose names begin so. */
export async function findVersions(
  { db, actor }: Context,
  { version, take }: { version: NonNullable<SearchTerms['version']>; take: number },
): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    select version.id::text from search_key
    join vdisk_version as version on version.organization_id = search_key.organization_id
      and version.vdisk_id = search_key.object_id and version.number = ${version.number}
    where search_key.organization_id = ${actor.organizationId}::uuid and kind = 'vdisk' and rank in (0, 1)
      and key >= ${version.vdisk} and key < ${`${version.vdisk}\u{10ffff}`} and ${visibleKeysSql(actor, 'vdisk')}
    order by rank, key limit ${take * keysOfVdiskMax}`
  return [...new Set(rows.map(({ id }) => id))].slice(0, take)
}

interface BootRow extends Place {
  id: string
  name: string
  siteName: string
  startedAt: Date
  outcome: BootOutcome | null
}

/** Boots with these ids that the actor may see, the newest first. */
export async function readBootHits({ db, actor }: Context, ids: string[], terms: SearchTerms): Promise<ReadHit[]> {
  if (ids.length === 0) return []
  const rows = await db.$queryRaw<BootRow[]>`
    select key.boot_id::text as id, coalesce(device.name, boot.mac) as name, site.name as "siteName",
      boot.started_at as "startedAt", boot.outcome, site.farm_id::text as "farmId", site.id::text as "siteId",
      device.collection_id::text as "collectionId"
    from boot_key as key join boot on boot.organization_id = key.organization_id and boot.id = key.boot_id
      and boot.received_on = key.received_on
    join site on site.organization_id = boot.organization_id and site.id = boot.site_id
    left join device on device.organization_id = boot.organization_id and device.id = boot.device_id
    where key.organization_id = ${actor.organizationId}::uuid and key.boot_id = any(${ids}::uuid[])
    order by boot.started_at desc, boot.id`
  return rows
    .filter(({ farmId, siteId, collectionId }) => may(actor, 'boot.read', { farmId, siteId, collectionId }))
    .map(({ id, name, siteName, startedAt, outcome }) => ({
      ...plain,
      id,
      name,
      place: siteName,
      match: matchOfId(terms, id),
      boot: { startedAt: startedAt.toISOString(), outcome },
    }))
}
