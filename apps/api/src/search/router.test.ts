import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { ChangedObject } from '../rules/changed-object.ts'
import type { SearchHit, SearchKind, SearchResult } from './schema.ts'

const site = useTestSite('owner')

const find = (search: string, more: object = {}, cookie = site().cookie) =>
  query<SearchResult>(site().api, cookie, 'search.find', { search, ...more })

async function hitsOf(kind: SearchKind, search: string, more: object = {}): Promise<SearchHit[]> {
  const { groups } = await find(search, more)
  return groups.find((group) => group.kind === kind)?.items ?? []
}

async function namesOf(kind: SearchKind, search: string, more: object = {}): Promise<string[]> {
  return (await hitsOf(kind, search, more)).map(({ name }) => name)
}

let macs = 0
async function addDevice(name: string, fields: object = {}): Promise<ChangedObject> {
  macs += 1
  const mac = `02:bf:5e:00:00:${macs.toString(16).padStart(2, '0')}`
  const { collectionId } = site().tenant
  return site().mutate<ChangedObject>('device.create', { collectionId, name, mac, ...fields })
}

test('a device is found by each word of its name, the whole name first', async () => {
  for (const name of ['LAB-VDI-0040', 'vdi-004', 'vdi-0041', 'other']) await addDevice(name)
  expect(await namesOf('device', 'VDI-004')).toEqual(['vdi-004', 'vdi-0041', 'LAB-VDI-0040'])
  expect(await namesOf('device', 'lab')).toEqual(['LAB-VDI-0040'])
  expect(await namesOf('device', '0041')).toEqual(['vdi-0041'])
  expect(await namesOf('device', 'di-0')).toEqual([])
  expect(await namesOf('device', '%')).toEqual([])
})

test('a device is found by its MAC address, the end of that, a tag, and its id', async () => {
  const { id } = await addDevice('tagged', { mac: '02:bf:aa:cc:dd:ee', tags: ['SN-4711'] })
  for (const search of ['02:bf:aa', '02-BF-AA-CC', '02bfaacc', 'cc:dd:ee', 'ddee'])
    expect((await hitsOf('device', search))[0]).toMatchObject({ name: 'tagged', match: { field: 'mac' } })
  expect((await hitsOf('device', 'sn-47'))[0]?.match).toEqual({ field: 'tag', value: 'SN-4711' })
  expect((await hitsOf('device', id.toUpperCase()))[0]).toMatchObject({ id, match: { field: 'id', value: id } })
  // Ids that are made one after the other begin alike.
  expect((await hitsOf('device', id.slice(0, 13), { limit: 20 })).map((hit) => hit.id)).toContain(id)
})

test('a device is found by what its last boot reported, and leads to that boot', async () => {
  const machineId = randomUUID()
  const bootId = randomUUID()
  await site().report(bootWith({ id: bootId, mac: site().mac, ip: '192.0.2.77', machineId }))
  expect((await hitsOf('device', '192.0.2.7'))[0]?.match).toEqual({ field: 'ip', value: '192.0.2.77' })
  expect((await hitsOf('device', machineId.slice(0, 9)))[0]?.match).toEqual({ field: 'machineId', value: machineId })
  expect((await hitsOf('boot', '192.0.2.77')).map(({ id }) => id)).toEqual([bootId])
  const [boot] = await hitsOf('boot', bootId.slice(0, 8))
  expect(boot).toMatchObject({ id: bootId, name: 'pc-01', match: { field: 'id' }, boot: { outcome: 'ready' } })
  await site().report(bootWith({ id: bootId, revision: 9, mac: site().mac, ip: '192.0.2.78' }))
  expect(await namesOf('device', '192.0.2.77')).toEqual([])
  expect(await namesOf('device', '192.0.2.78')).toEqual(['pc-01'])
})

test('sites, collections, edges, vDisks, versions and people are found', async () => {
  const { siteId, farmId, versionId, vdiskId } = site().tenant
  await site().mutate('site.update', { siteId, revision: 1, name: 'Hall North' })
  expect(await namesOf('site', 'north')).toEqual(['Hall North'])
  await site().mutate('collection.create', { siteId, name: 'Reading room', vdiskId: null })
  expect((await hitsOf('collection', 'reading'))[0]).toMatchObject({ name: 'Reading room', place: 'Hall North' })
  expect(await namesOf('edge', 'edge-1')).toEqual(['edge-1'])
  expect(await namesOf('vdisk', 'lin')).toEqual(['Linux'])
  expect((await hitsOf('version', 'linux v1'))[0]).toMatchObject({ id: versionId, name: 'Linux version 1', vdiskId })
  await site().mutate('vdisk.create', { farmId, name: 'Linux test' })
  expect(await namesOf('version', 'linux 1')).toEqual(['Linux version 1'])
  const [person] = await hitsOf('person', 'owner')
  expect(person).toMatchObject({ place: null, vdiskId: null, boot: null })
})

test('keys follow their objects: renamed, moved to the trash, restored', async () => {
  const { id } = await addDevice('before')
  await site().mutate('device.update', { deviceId: id, revision: 1, name: 'after', tags: ['Spare'] })
  expect([await namesOf('device', 'before'), await namesOf('device', 'after')]).toEqual([[], ['after']])
  const { deletionId } = await site().mutate<{ deletionId: string }>('device.remove', { deviceId: id })
  expect([await namesOf('device', 'after'), await namesOf('device', 'spare')]).toEqual([[], []])
  expect(await site().api.db.searchKey.count({ where: { objectId: id } })).toBe(0)
  await site().mutate('device.restore', { deletionId })
  expect(await namesOf('device', 'spare')).toEqual(['after'])
})

test('the best kind is first, and each kind says that there are more', async () => {
  for (const name of ['east-1', 'east-2', 'east-3']) await addDevice(name)
  await site().mutate('collection.create', { siteId: site().tenant.siteId, name: 'East', vdiskId: null })
  const { groups } = await find('east', { limit: 2 })
  expect(groups.map(({ kind, items, hasMore }) => [kind, items.length, hasMore])).toEqual([
    ['collection', 1, false],
    ['device', 2, true],
  ])
  expect((await find('east', { kinds: ['device'] })).groups.map(({ kind }) => kind)).toEqual(['device'])
})

test('another organization’s objects are not found, by name, address, id or e-mail', async () => {
  const other = await site().other('owner')
  const id = randomUUID()
  await other.report(bootWith({ id, mac: other.mac, ip: '192.0.2.99' }))
  await other.mutate('device.update', { deviceId: other.deviceId, revision: 1, name: 'theirs' })
  for (const search of ['theirs', '192.0.2.99', id, other.deviceId, other.tenant.siteId, other.tenant.versionId])
    expect([search, (await find(search)).groups]).toEqual([search, []])
  const seen = await other.query<SearchResult>('search.find', { search: 'theirs' })
  expect(seen.groups[0]?.items.map(({ name }) => name)).toEqual(['theirs'])
})

test('a role finds no kind that it may not read', async () => {
  const viewer = await signInAs(site().api, site().tenant.organizationId, 'viewer')
  expect((await find('owner')).groups.map(({ kind }) => kind)).toContain('person')
  expect((await find('owner', {}, viewer)).groups.map(({ kind }) => kind)).not.toContain('person')
})

test.each([
  ['', 'Enter what to search for.'],
  ['x'.repeat(65), 'A search can have at most 64 characters.'],
  ['a\u202eb', 'A search cannot contain control characters.'],
])('refuses the search %j', async (search, text) => {
  const answer = await site().tryQuery('search.find', { search })
  expect([answer.status, answer.code]).toEqual([400, 'invalid'])
  expect(answer.text).toContain(text)
})

test('a search that takes too long ends, and says what to do', async () => {
  const { api } = site()
  // A lock that a search waits for takes as long as anything else.
  await api.db.$transaction(async (transaction) => {
    await transaction.$executeRaw`lock table search_key in access exclusive mode`
    const answer = await site().tryQuery('search.find', { search: 'pc' })
    expect([answer.status, answer.code]).toEqual([503, 'unavailable'])
    expect(answer.text).toContain('The search took too long. Enter more characters.')
  })
})
