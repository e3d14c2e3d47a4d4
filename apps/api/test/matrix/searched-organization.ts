import { randomUUID } from 'node:crypto'
import { createOrganization } from '../../src/organization/found-organization.ts'
import { organizationPlace, type Place } from '../../src/rules/place.ts'
import type { SearchKind } from '../../src/search/schema.ts'
import type { TestApi } from '../test-api.ts'

/** With these digits begin the ids, and with this word the names and labels, of all that is made here. */
export const idsBegin = '0b1ec700'
export const namesBegin = 'obj'

export interface SearchedOrganization {
  organizationId: string
  /** Where a role can hold. */
  places: Place[]
  ids: Record<Exclude<SearchKind, 'person'>, string[]>
}

let count = 0
const idOf = () => `${idsBegin}${randomUUID().slice(idsBegin.length)}`
function nameOf(): string {
  count += 1
  return `${namesBegin}-${count}`
}
const many = (length: number) => Array.from({ length }, idOf)

/** An organization of two farms with two sites each, and two collections in each of those; all begin alike. */
export async function createSearchedOrganization(api: TestApi, slug: string): Promise<SearchedOrganization> {
  const context = { db: api.db, clock: api.clock.read }
  const organizationId = await createOrganization(context, { slug, name: `Organization ${slug}` })
  const ids = { device: [], boot: [], vdisk: [], version: [], site: [], edge: [], collection: [] }
  const made: SearchedOrganization = { organizationId, places: [organizationPlace], ids }
  await api.db.$queryRaw`select ensure_boot_partitions(${api.clock.now}::date, ${api.clock.now}::date)::text`
  const day = { organizationId, receivedOn: dayOf(api) }
  await api.db.bootDay.create({ data: { ...day, earliestStartedAt: new Date(api.clock.now.getTime() - 3_600_000) } })
  for (const farmId of many(2)) await addFarm(api, made, farmId)
  await moveDevice(api, made)
  return made
}

async function addFarm(api: TestApi, made: SearchedOrganization, farmId: string): Promise<void> {
  const { organizationId, places, ids } = made
  await api.db.farm.create({ data: { organizationId, id: farmId, name: nameOf() } })
  places.push({ ...organizationPlace, farmId })
  for (const id of many(2)) {
    await api.db.vdisk.create({ data: { organizationId, farmId, id, name: nameOf() } })
    ids.vdisk.push(id)
    const facts = { sizeBytes: 4_096, diskPath: 'a/disk.raw', commandLine: '' }
    for (const [index, versionId] of many(2).entries()) {
      const data = { organizationId, vdiskId: id, id: versionId, number: index + 1, ...facts }
      // Each begins like the others, and would be found by each of its labels.
      await api.db.vdiskVersion.create({ data: { ...data, labels: [nameOf(), nameOf(), nameOf()] } })
      ids.version.push(versionId)
    }
  }
  for (const siteId of many(2)) await addSite(api, made, { farmId, siteId })
}

async function addSite(
  api: TestApi,
  made: SearchedOrganization,
  { farmId, siteId }: { farmId: string; siteId: string },
): Promise<void> {
  const { organizationId, places, ids } = made
  await api.db.site.create({ data: { organizationId, farmId, id: siteId, name: nameOf(), timeZone: 'UTC' } })
  ids.site.push(siteId)
  places.push({ farmId, siteId, collectionId: null })
  const edgeId = idOf()
  const edge = { publicKey: randomUUID(), arch: 'x86_64', agentVersion: '1', enrolledAt: api.clock.now }
  await api.db.edge.create({ data: { organizationId, siteId, id: edgeId, name: nameOf(), ...edge } })
  ids.edge.push(edgeId)
  for (const collectionId of many(2)) {
    await api.db.collection.create({ data: { organizationId, siteId, id: collectionId, name: nameOf() } })
    ids.collection.push(collectionId)
    places.push({ farmId, siteId, collectionId })
    for (const id of many(2)) {
      const tags = Array.from({ length: 10 }, nameOf)
      const mac = `02:bf:0b:${[16, 8, 0].map((shift) => hex((count >> shift) & 255)).join(':')}`
      await api.db.device.create({ data: { organizationId, siteId, collectionId, id, name: nameOf(), mac, tags } })
      ids.device.push(id)
      await addBoot(api, made, { siteId, edgeId, deviceId: id, mac })
    }
  }
  // Of a machine that nobody has registered.
  await addBoot(api, made, { siteId, edgeId, deviceId: null, mac: '02:bf:0b:ff:ff:ff' })
}

const hex = (byte: number) => byte.toString(16).padStart(2, '0')

interface BootFacts {
  siteId: string
  edgeId: string
  deviceId: string | null
  mac: string
}

async function addBoot(api: TestApi, { organizationId, ids }: SearchedOrganization, facts: BootFacts): Promise<void> {
  const [id, { now }] = [idOf(), api.clock]
  const receivedOn = dayOf(api)
  ids.boot.push(id)
  await api.db.bootKey.create({ data: { organizationId, bootId: id, receivedOn, change: ids.boot.length } })
  await api.db.boot.create({
    data: {
      organizationId,
      id,
      receivedOn,
      ...facts,
      revision: 1,
      startedAt: new Date(now.getTime() - 60_000),
      receivedAt: now,
      updatedAt: now,
      totalUs: 1,
      bytesOut: 0,
      retries: 0,
      simulated: false,
      generated: false,
      phases: [],
    },
  })
}

/** The last device is where the first one is now; its boots were at its old site. */
async function moveDevice(api: TestApi, { organizationId, ids }: SearchedOrganization): Promise<void> {
  const of = (id = '') => ({ organizationId_id: { organizationId, id } })
  const first = await api.db.device.findUniqueOrThrow({ where: of(ids.device[0]) })
  const { siteId, collectionId } = first
  await api.db.device.update({ where: of(ids.device.at(-1)), data: { siteId, collectionId } })
}

function dayOf({ clock }: TestApi): Date {
  return new Date(`${clock.now.toISOString().slice(0, 10)}T00:00:00Z`)
}
