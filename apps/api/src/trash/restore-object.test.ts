import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { createSpareObjects } from '../../test/spare-objects.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { DeviceDetail } from '../device/schema.ts'
import { procedurePolicies } from '../http/trpc/policies.ts'
import { isMemberPolicy } from '../http/trpc/policy.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import type { SiteDetail } from '../site/schema.ts'
import { purgeOldDeletions } from './purge-deletion.ts'

const site = useTestSite('owner')

const dayMs = 86_400_000
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

test('boots of a deleted site are out of sight', async () => {
  const { organizationId, siteId } = site().tenant
  const bootId = randomUUID()
  await site().report(bootWith({ id: bootId, mac: site().mac }))
  const list = async () => (await site().query<{ items: object[] }>('boot.list', {})).items.length
  expect(await list()).toBe(1)
  await site().api.db.edge.updateMany({ where: { organizationId }, data: { revokedAt: new Date() } })
  const { deletionId } = await remove('site.remove', { siteId })
  expect(await list()).toBe(0)
  expect((await site().tryQuery('boot.get', { bootId })).status).toBe(404)
  expect(await names('edge.list')).toEqual([])
  await site().mutate('site.restore', { deletionId })
  expect(await list()).toBe(1)
})

test('a deleted collection takes its devices out of every list and state, and restoring brings all back', async () => {
  const { collectionId, siteId } = site().tenant
  const { deletionId } = await remove('collection.remove', { collectionId, revision: 1 })
  expect(await names('device.list')).toEqual([])
  expect((await site().query<SiteDetail>('site.get', { siteId })).collections).toEqual([])
  expect((await site().state()).devices).toEqual([])
  expect((await site().tryQuery('device.get', { deviceId: site().deviceId })).status).toBe(404)
  const trash = await site().query<{ items: object[] }>('trash.list', {})
  expect(trash.items).toMatchObject([{ name: 'Lab', kind: 'collection', with: [{ noun: 'device', count: 6 }] }])
  await site().mutate('collection.restore', { deletionId })
  expect((await names('device.list')).length).toBe(6)
  expect((await site().state()).devices.length).toBe(6)
  expect((await site().query<{ items: object[] }>('trash.list', {})).items).toEqual([])
})

test('no list and no look-up shows what lies in the trash', async () => {
  const { deletions } = await createSpareObjects(site().api, site().tenant)
  const trashed = Object.values(deletions).flat()
  const queries = procedurePolicies().filter(({ type, path }) => type === 'query' && path !== 'trash.list')
  for (const { path, policy } of queries) {
    const place = [isMemberPolicy(policy) ? policy.place : 'organization'].flat()[0]
    const input = typeof place === 'object' ? { [place.id]: deletions[place.kind as 'farm']?.[0] ?? randomUUID() } : {}
    const answer = await site().tryQuery(path, path === 'session.me' ? undefined : input)
    expect([path, trashed.filter((id) => answer.text.includes(id))]).toEqual([path, []])
    if (typeof place === 'object') expect([path, answer.status]).not.toEqual([path, 200])
  }
})

test('names and addresses in the trash are free, and a restoration that meets them is told so', async () => {
  const { collectionId } = site().tenant
  const { deletionId } = await remove('device.remove', { deviceId: site().deviceId })
  const again = await make('device.create', { collectionId, name: 'pc-new', mac: site().mac })
  const answer = await site().tryMutation('device.restore', { deletionId })
  expect([answer.status, answer.text]).toEqual([
    409,
    expect.stringContaining(`${site().mac} was taken in the meantime by pc-new`),
  ])
  await remove('device.remove', { deviceId: again.id })
  await site().mutate('device.restore', { deletionId })
  expect((await site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })).name).toBe('pc-01')
})

test('what lies in the trash itself cannot take anything back', async () => {
  const chain = await makeChain()
  const device = await remove('device.remove', { deviceId: chain.device.id })
  const collection = await remove('collection.remove', { collectionId: chain.collection.id })
  const answer = await site().tryMutation('device.restore', { deletionId: device.deletionId })
  expect([answer.status, answer.text]).toEqual([409, expect.stringContaining('collection Lab is in the trash')])
  expect((await site().tryMutation('site.restore', { deletionId: collection.deletionId })).status).toBe(404)
})

test('a device is never registered in a collection that is deleted at the same time', async () => {
  const chain = await makeChain()
  const collectionId = chain.collection.id
  const [made, deleted] = await Promise.all([
    site().tryMutation('device.create', { collectionId, name: 'pc-2', mac: '02:bf:00:00:00:78' }),
    site().tryMutation('collection.remove', { collectionId }),
  ])
  expect(deleted.status).toBe(200)
  expect([200, 404, 409]).toContain(made.status)
  expect(await names('device.list', { search: 'pc-2' })).toEqual([])
})

test('a farm goes into the trash with all that it holds, and after 30 days for ever', async () => {
  const chain = await makeChain()
  await remove('device.remove', { deviceId: chain.device.id })
  await remove('farm.remove', { farmId: chain.farm.id })
  const { db, clock } = site().api
  const count = () => db.device.count({ where: { id: chain.device.id } })
  clock.advance(29 * dayMs)
  const platform = { db, clock: clock.read }
  expect(await purgeOldDeletions(platform)).toBe(0)
  expect(await count()).toBe(1)
  clock.advance(2 * dayMs)
  await purgeOldDeletions(platform)
  clock.advance(-31 * dayMs)
  expect(await count()).toBe(0)
  expect(await db.farm.count({ where: { id: chain.farm.id } })).toBe(0)
  expect(await db.deletion.count({ where: { organizationId: site().tenant.organizationId } })).toBe(0)
})

test('a role in a deleted site holds nowhere', async () => {
  const { api, tenant } = site()
  const chain = await makeChain()
  const cookie = await signInAs(api, tenant.organizationId, 'viewer')
  await api.db.roleGrant.updateMany({
    where: { organizationId: tenant.organizationId, role: 'viewer' },
    data: { siteId: chain.site.id },
  })
  await remove('site.remove', { siteId: chain.site.id })
  const answer = await site().tryMutation('device.bootAgain', { deviceId: site().deviceId }, cookie)
  expect([answer.status, answer.code]).toEqual([403, 'forbidden'])
})
