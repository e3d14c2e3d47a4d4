import { expect, test } from 'vitest'
import { useTestSite } from '../../test/test-site.ts'
import type { ChangedObject } from '../rules/changed-object.ts'
import { devicesPerSiteMax } from '../rules/object-fields.ts'
import type { DeviceDetail, DeviceSummary, PlanResult } from './schema.ts'

const site = useTestSite('owner')

const change = (input: object) =>
  site().mutate<PlanResult>('device.changeMany', { deviceIds: site().tenant.deviceIds, ...input })
const importCsv = (csv: string, preview = false) =>
  site().mutate<PlanResult>('device.importCsv', { siteId: site().tenant.siteId, csv, preview })
async function exportCsv(search = ''): Promise<string> {
  const url = `${site().api.url}/api/v1/device-exports${search}`
  return (await fetch(url, { headers: { cookie: site().cookie } })).text()
}
const devices = async () => (await site().query<{ items: DeviceSummary[] }>('device.list', { limit: 100 })).items

/** A site of another farm, with a collection and one device. */
async function makeOtherFarm() {
  const farm = await site().mutate<ChangedObject>('farm.create', { name: 'Other farm' })
  const place = { farmId: farm.id, name: 'Hall', timeZone: 'UTC' }
  const hall = await site().mutate<ChangedObject>('site.create', place)
  const collection = await site().mutate<ChangedObject>('collection.create', {
    siteId: hall.id,
    name: 'Pool',
  })
  return { farm, hall, collection }
}

test('a preview shows the result for each device and changes nothing', async () => {
  const { collection } = await makeOtherFarm()
  const { vdiskId } = site().tenant
  await change({ deviceIds: [site().deviceId], vdiskId })
  const plan = await change({ collectionId: collection.id, addTags: ['moved'], preview: true })
  expect(plan).toMatchObject({ applied: false, changedCount: 6, refusedCount: 0 })
  expect(plan.rows.find(({ deviceId }) => deviceId === site().deviceId)?.changes).toEqual([
    'collection',
    'tags',
    'vDisk',
    'it moves to Hall; its boots stay with the old site',
    'its own vDisk belongs to another farm and is removed',
  ])
  expect((await devices()).every(({ tags, siteName }) => tags.length === 0 && siteName !== 'Hall')).toBe(true)
})

test('devices move to another site with all that goes along, and their edges hear of it', async () => {
  const { collection, hall } = await makeOtherFarm()
  expect(await change({ collectionId: collection.id })).toMatchObject({ applied: true, changedCount: 6 })
  expect((await devices()).map(({ siteId }) => siteId)).toEqual(Array(6).fill(hall.id))
  expect((await site().state()).devices).toEqual([])
})

test('one device that cannot move keeps all of them in place, with the reason', async () => {
  const { collection } = await makeOtherFarm()
  await site().mutate('device.create', { collectionId: collection.id, name: 'pc-03', mac: site().mac })
  const plan = await change({ collectionId: collection.id })
  expect(plan).toMatchObject({ applied: false, refusedCount: 2, changedCount: 4 })
  expect(plan.rows.slice(0, 2)).toMatchObject([
    { name: 'pc-01', problems: ['The MAC address 02:bf:00:00:00:01 already belongs to pc-03 at this site.'] },
    { name: 'pc-03', problems: ['This site already has a device named pc-03.'] },
  ])
  expect((await devices()).filter(({ collectionName }) => collectionName === 'Lab')).toHaveLength(6)
})

test('all that a filter leaves are tagged and switched off, and deleted, and restored one by one', async () => {
  const { ids, isCut } = await site().query<{ ids: string[]; isCut: boolean }>('device.listIds', {
    search: 'pc-0',
  })
  expect([ids.length, isCut]).toEqual([6, false])
  await change({ deviceIds: ids, addTags: ['b', 'a'], enabled: false })
  expect(await change({ deviceIds: ids, addTags: ['a'], removeTags: ['b'] })).toMatchObject({
    changedCount: 6,
  })
  expect((await devices()).map(({ tags, enabled }) => [tags, enabled])).toEqual(Array(6).fill([['a'], false]))
  await site().mutate('device.removeMany', { deviceIds: ids })
  expect(await devices()).toEqual([])
  const trash = await site().query<{ items: { id: string; name: string }[] }>('trash.list', {})
  const second = trash.items.find(({ name }) => name === 'pc-02')
  await site().mutate('device.restore', { deletionId: second?.id })
  expect((await devices()).map(({ name }) => name)).toEqual(['pc-02'])
})

test('types of devices are given to many, kept in tables, and filtered by', async () => {
  const { deviceIds } = site().tenant
  const plan = await change({ deviceIds: deviceIds.slice(0, 2), deviceType: 'test' })
  expect(plan.rows.map(({ changes }) => changes)).toEqual([['device type'], ['device type']])
  const csv = await exportCsv('?deviceType=test')
  expect(csv.trim().split('\r\n')).toHaveLength(3)
  const device = () => site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })
  await importCsv(csv.replaceAll(/\btest\b/g, 'Maintenance'))
  expect((await device()).deviceType).toBe('maintenance')
  const wrong = await importCsv('mac,device_type\n02:bf:00:00:00:01,private')
  expect(wrong.rows[0]?.problems).toEqual(['device_type: Enter production, test or maintenance.'])
  const { revision } = await device()
  await site().mutate('device.update', { deviceId: site().deviceId, revision, deviceType: 'production' })
  expect(await device()).toMatchObject({ deviceType: 'production', revision: revision + 1 })
})

test('an order for many goes to all or to none, and names the devices that cannot take it', async () => {
  const { deviceIds } = site().tenant
  await change({ deviceIds: deviceIds.slice(0, 2), enabled: false })
  const answer = await site().tryMutation('device.powerMany', { deviceIds, order: 'power_on' })
  expect([answer.status, answer.text]).toEqual([
    409,
    expect.stringContaining('2 of 6 devices cannot be changed: pc-01: This device is disabled.'),
  ])
  expect((await site().state()).powerOns).toEqual([])
  await site().mutate('device.powerMany', { deviceIds: deviceIds.slice(2), order: 'power_on' })
  expect((await site().state()).powerOns).toHaveLength(4)
})

test('a table with a wrong line changes nothing; put right it creates and changes, and again it changes nothing', async () => {
  const heading = 'mac;name;collection;enabled;tags;vdisk;personality.ROOM'
  const lines = ['02-BF-00-00-00-01;pc-01;;no;"a, b";Linux;=A1', '02:bf:00:00:00:99;new-1;Lab;;;;B2']
  const wrong = await importCsv([heading, ...lines, '02:bf:00:00:00:98;new-2;Labb;;;;'].join('\n'))
  expect(wrong).toMatchObject({ applied: false, refusedCount: 1, changedCount: 1, createdCount: 1 })
  expect(wrong.rows[0]).toMatchObject({ line: 4, problems: ['There is no collection named Labb here.'] })
  expect(await devices()).toHaveLength(6)
  const right = [heading, ...lines, '02:bf:00:00:00:98;new-2;Lab;;;;'].join('\n')
  expect(await importCsv(right, true)).toMatchObject({ applied: false, createdCount: 2 })
  expect(await importCsv(right)).toMatchObject({ applied: true, createdCount: 2, changedCount: 1 })
  expect(await importCsv(right)).toMatchObject({ applied: true, unchangedCount: 3, createdCount: 0 })
  const device = await site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })
  expect(device).toMatchObject({ enabled: false, tags: ['a', 'b'], personality: { ROOM: '=A1' } })
  const csv = await exportCsv()
  expect(csv).toContain(`"'=A1"`)
  expect(await importCsv(csv)).toMatchObject({ applied: true, unchangedCount: 8, changedCount: 0 })
})

test('two lines about one device, and an incomplete new one, are refused with their line numbers', async () => {
  const plan = await importCsv('mac,name\n02:bf:00:00:00:01,\n,pc-01\n02:bf:00:00:00:97,\n')
  expect(plan.rows.filter(({ kind }) => kind === 'refused')).toMatchObject([
    { line: 4, problems: ['A new device needs a name.', 'A new device needs a collection.'] },
    {
      line: 3,
      problems: ['Line 2 names the same device.', expect.stringContaining('already belongs to pc-01')],
    },
  ])
})

test('as many lines as a site has room for are taken at once, and one more is refused', async () => {
  const { organizationId, siteId, collectionId } = site().tenant
  const macOf = (index: number) =>
    `02:aa:00:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 255).toString(16).padStart(2, '0')}`
  const lines = Array.from({ length: 2_000 }, (_, index) => `${macOf(index)},m-${index},Lab`)
  const heading = 'mac,name,collection'
  await site().api.db.device.createMany({
    data: Array.from({ length: devicesPerSiteMax - 6 - lines.length }, (_, index) => ({
      organizationId,
      siteId,
      collectionId,
      name: `there-${index}`,
      mac: macOf(10_000 + index),
    })),
  })
  const plan = await importCsv([heading, ...lines].join('\n'))
  expect([plan.applied, plan.refusedCount, plan.createdCount]).toEqual([true, 0, 2_000])
  const more = await importCsv(`${heading}\n02:aa:00:00:ff:ff,more,Lab`)
  expect(more.rows[0]?.problems).toEqual(['A site can have at most 10000 devices.'])
  expect((await site().state()).devices).toHaveLength(devicesPerSiteMax)
})
