import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { CollectionDetail } from '../collection/schema.ts'
import type { DeviceDetail } from '../device/schema.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import type { SiteDetail } from '../site/schema.ts'

const site = useTestSite('owner')

const newMac = '02:BF-00.00:00:77'

const make = (path: string, input: object) => site().mutate<ChangedObject>(path, input)
const remove = (path: string, input: object) => site().mutate<DeletedObject>(path, input)
const names = async (path: string, input: object = {}) =>
  (await site().query<{ items: { name: string }[] }>(path, input)).items.map(({ name }) => name)

/** From an organization's farm down to a device that is to boot. */
async function makeChain() {
  const farm = await make('farm.create', { name: 'Second farm' })
  const store = await make('store.create', { farmId: farm.id, name: 'Main store' })
  const vdisk = await make('vdisk.create', { farmId: farm.id, name: 'Linux', storeId: store.id })
  const files = { diskPath: 'linux/1/disk.raw', sizeBytes: 1024, kernelPath: 'linux/1/kernel' }
  const version = await make('vdisk.registerVersion', { vdiskId: vdisk.id, ...files })
  const place = await make('site.create', { farmId: farm.id, name: 'Hall', timeZone: 'Europe/Berlin' })
  const collection = await make('collection.create', { siteId: place.id, name: 'Lab', vdiskId: vdisk.id })
  const device = await make('device.create', { collectionId: collection.id, name: 'pc-1', mac: newMac })
  return { farm, store, vdisk, version, site: place, collection, device }
}

test('from a farm to a device everything can be made, and is there', async () => {
  const { farm, device, version } = await makeChain()
  expect(await names('site.list', { farmId: farm.id })).toEqual(['Hall'])
  expect(await names('site.list', { search: 'hAL' })).toEqual(['Hall'])
  expect(version.name).toBe('Linux version 1')
  expect(await site().query('device.get', { deviceId: device.id })).toMatchObject({
    name: 'pc-1',
    mac: '02:bf:00:00:00:77',
    vdisk: { name: 'Linux', versionNumber: 1 },
    revision: 1,
  })
})

test.each([
  ['farm.create', () => ({ name: `Farm of own-3` }), /has a farm named/],
  ['collection.create', () => ({ siteId: site().tenant.siteId, name: 'Lab' }), /has a collection named Lab/],
  [
    'device.create',
    () => ({ collectionId: site().tenant.collectionId, name: 'pc-01', mac: newMac }),
    /already has a device named pc-01/,
  ],
  [
    'device.create',
    () => ({ collectionId: site().tenant.collectionId, name: 'x', mac: site().mac }),
    /02:bf:00:00:00:01 already belongs to pc-01/,
  ],
])('%s says which name or address is taken', async (path, input, text) => {
  const wanted = path === 'farm.create' ? { name: (await names('farm.list'))[0] } : input()
  const answer = await site().tryMutation(path, wanted)
  expect([answer.status, answer.code]).toEqual([409, 'conflict'])
  expect(answer.text).toMatch(text)
})

test('of two changes at once one wins, and the other hears who changed what', async () => {
  const { collectionId, organizationId } = site().tenant
  const other = await signInAs(site().api, organizationId, 'admin')
  const change = (name: string, cookie?: string) =>
    site().tryMutation('collection.update', { collectionId, revision: 1, name }, cookie)
  const answers = await Promise.all([change('First'), change('Second', other)])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  const lost = answers.find(({ status }) => status === 409)
  expect(lost?.text).toMatch(/changed in the meantime: A (owner|admin) changed name at \d\d:\d\d UTC/)
  expect(JSON.parse(lost?.text ?? '').error.data.revision).toBe(2)
})

test('who may not read the audit log hears only that something has changed', async () => {
  const deviceId = site().deviceId
  await make('device.update', { deviceId, revision: 1, tags: ['b', 'a', 'b'] })
  const operator = await signInAs(site().api, site().tenant.organizationId, 'operator')
  const answer = await site().tryMutation('device.update', { deviceId, revision: 1, enabled: false }, operator)
  expect(answer.text).toContain('This device was changed in the meantime. Load the latest version to see how.')
})

test('a choice that takes no revision is counted as well', async () => {
  const { siteId } = site().tenant
  await site().mutate('site.setCapture', { siteId, capture: 'always' })
  expect((await site().query<SiteDetail>('site.get', { siteId })).revision).toBe(2)
})

test('a device has its site’s and its collection’s names and values, and its own before them', async () => {
  const { siteId, collectionId } = site().tenant
  await make('site.update', { siteId, revision: 1, personality: { A: 'site', B: 'site', C: 'site' } })
  await make('collection.update', {
    collectionId,
    revision: 1,
    personality: { B: 'collection', C: 'collection' },
  })
  await make('device.update', { deviceId: site().deviceId, revision: 1, personality: { C: 'device' } })
  const device = await site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })
  expect(device.inheritedPersonality).toEqual([
    { name: 'A', value: 'site', origin: 'site' },
    { name: 'B', value: 'collection', origin: 'collection' },
    { name: 'C', value: 'device', origin: 'device' },
  ])
  for (const personality of [{ '1a': '' }, { a: 'two\nlines' }, { a: 'x'.repeat(1025) }]) {
    const answer = await site().tryMutation('device.update', {
      deviceId: device.id,
      revision: 2,
      personality,
    })
    expect([answer.status, answer.code]).toEqual([400, 'invalid'])
  }
})

test('a new device gets the settings of its collection’s template', async () => {
  const { collectionId, vdiskId } = site().tenant
  const settings = { tags: ['room-1'], personality: { PRINTER: 'p1' }, enabled: false, vdiskId }
  await make('device.update', { deviceId: site().deviceId, revision: 1, ...settings })
  await make('collection.update', { collectionId, revision: 1, templateDeviceId: site().deviceId })
  const { id } = await make('device.create', { collectionId, name: 'new', mac: newMac, enabled: true })
  expect(await site().query('device.get', { deviceId: id })).toMatchObject({
    tags: settings.tags,
    personality: settings.personality,
    enabled: true,
    ownVdisk: { id: vdiskId },
    isTemplate: false,
  })
})

test('a device’s own vDisk goes before its collection’s in its edges’ desired state at once', async () => {
  const { farmId } = site().tenant
  const vdisk = await make('vdisk.create', { farmId, name: 'Other' })
  const files = { diskPath: 'other/disk.raw', sizeBytes: 512 }
  const version = await make('vdisk.registerVersion', { vdiskId: vdisk.id, ...files })
  await make('device.update', { deviceId: site().deviceId, revision: 1, vdiskId: vdisk.id })
  const state = await site().state()
  expect(state.devices.find(({ id }) => id === site().deviceId)?.versionId).toBe(version.id)
  expect(state.vdisks.map(({ name }) => name).sort()).toEqual(['Linux', 'Other'])
})

test('an object in use is not deleted, and the error names its users', async () => {
  const { vdiskId, versionId, siteId, farmId } = site().tenant
  const refusals = [
    ['vdisk.remove', { vdiskId }, 'the collection Lab'],
    ['vdisk.removeVersion', { versionId }, 'the collection Lab'],
    ['site.remove', { siteId }, 'the edge edge-1'],
    ['farm.remove', { farmId }, 'the edge edge-1'],
  ] as const
  for (const [path, input, user] of refusals) {
    const answer = await site().tryMutation(path, input)
    expect([path, answer.status]).toEqual([path, 409])
    expect(answer.text).toContain(user)
  }
})

test('a version that a device runs is not deleted, and the error names the device', async () => {
  const { vdiskId, versionId } = site().tenant
  await site().report(bootWith({ id: randomUUID(), mac: site().mac, vdiskId, versionId }))
  const files = { diskPath: 'linux/2/disk.raw', sizeBytes: 512 }
  await make('vdisk.registerVersion', { vdiskId, ...files })
  const answer = await site().tryMutation('vdisk.removeVersion', { versionId })
  expect([answer.status, answer.text]).toEqual([409, expect.stringContaining('the running device pc-01')])
})

test('a move to another farm unassigns vDisks only on request', async () => {
  const chain = await makeChain()
  const move = { siteId: chain.site.id, farmId: site().tenant.farmId, revision: 1 }
  const refused = await site().tryMutation('site.move', move)
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('the collection Lab')])
  await site().mutate('site.move', { ...move, dropForeign: true })
  const { collections } = await site().query<SiteDetail>('site.get', { siteId: chain.site.id })
  expect(collections[0]).toMatchObject({ name: 'Lab', vdiskId: null, deviceCount: 1 })
})

test('each of these changes is in the audit log, before and after', async () => {
  const { collectionId } = site().tenant
  await make('collection.update', { collectionId, revision: 1, name: 'Studio' })
  await remove('collection.remove', { collectionId })
  const entries = await site().api.db.auditEntry.findMany({
    where: { objectId: collectionId },
    orderBy: { id: 'asc' },
    select: { action: true, before: true, after: true, collectionId: true },
  })
  expect(entries).toMatchObject([
    { action: 'collection.update', before: { name: 'Lab' }, after: { name: 'Studio' }, collectionId },
    { action: 'collection.remove', before: { name: 'Studio', device: 6 }, after: null },
  ])
  const { revision } = await site()
    .query<CollectionDetail>('collection.get', { collectionId })
    .catch(() => ({ revision: 0 }))
  expect(revision).toBe(0)
})
