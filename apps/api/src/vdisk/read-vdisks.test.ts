import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { VdiskDetail } from './schema.ts'

const site = useTestSite('viewer')
const read = () => site().query<VdiskDetail>('vdisk.get', { vdiskId: site().tenant.vdiskId })

test('a vDisk that thousands of collections boot names the first 200, and counts all', async () => {
  const { api, tenant } = site()
  const { organizationId, siteId, vdiskId, collectionId } = tenant
  await api.db.$executeRaw`
    insert into collection (organization_id, id, site_id, name, vdisk_id)
    select ${organizationId}::uuid, gen_random_uuid(), ${siteId}::uuid, 'Room ' || (1000 + number), ${vdiskId}::uuid
    from generate_series(1, 204) as number`
  const vdisk = await read()
  expect([vdisk.collectionCount, vdisk.collections.length]).toEqual([205, 200])
  expect(vdisk.collections[0]).toMatchObject({ id: collectionId, name: 'Lab', deviceCount: 6 })
  expect(vdisk.collections[199]).toMatchObject({ name: 'Room 1199', deviceCount: 0 })
})

test('devices are counted by what their last boot reads, whichever release has written it', async () => {
  const { api, tenant } = site()
  const { organizationId, vdiskId, versionId, macs } = tenant
  const startedUnixMs = api.clock.now.getTime() - 60_000
  const bootOf = (mac: string) => bootWith({ id: randomUUID(), mac, startedUnixMs, vdiskId, versionId })
  await site().report(...macs.slice(0, 5).map(bootOf))
  const running = async () => (await read()).versions[0]?.running
  const all = { count: 5, names: ['pc-01', 'pc-02', 'pc-03'] }
  expect(await running()).toEqual(all)
  // As the release before leaves a device that booted again.
  await api.db.$executeRaw`update device set runs_boot_id = gen_random_uuid(), runs_version_id = gen_random_uuid()
    where organization_id = ${organizationId}::uuid and name = 'pc-02'`
  expect(await running()).toEqual(all)
  await api.db.$executeRaw`update device set last_boot_outcome = 'failed'
    where organization_id = ${organizationId}::uuid and name in ('pc-01', 'pc-02')`
  expect(await running()).toEqual({ count: 3, names: ['pc-03', 'pc-04', 'pc-05'] })
})

test('devices that took an order or left with what they wrote are not counted as running, each once', async () => {
  const { api, tenant, edge } = site()
  const { organizationId, vdiskId, versionId, macs, deviceIds } = tenant
  const startedUnixMs = api.clock.now.getTime() - 60_000
  const boots = macs.slice(0, 5).map((mac) => bootWith({ id: randomUUID(), mac, startedUnixMs, vdiskId, versionId }))
  await site().report(...boots)
  const running = async () => (await read()).versions.map((version) => version.running)
  for (const index of [0, 0, 1])
    await api.db.powerOrder.create({
      data: {
        organizationId,
        deviceId: deviceIds[index] ?? '',
        order: 'restart',
        requestedAt: api.clock.now,
        expiresAt: api.clock.now,
        takenBootId: boots[index]?.id ?? '',
      },
      select: { id: true },
    })
  // The second one has booted since.
  const again = { id: randomUUID(), mac: macs[1] ?? '', startedUnixMs: startedUnixMs + 1_000 }
  await site().report(bootWith({ ...again, vdiskId, versionId }))
  expect(await running()).toEqual([{ count: 4, names: ['pc-02', 'pc-03', 'pc-04'] }])
  await api.db.device.update({
    where: { organizationId_id: { organizationId, id: deviceIds[2] ?? '' } },
    data: { lastBootOutcome: null },
    select: { id: true },
  })
  const facts = { organizationId, versionId, edgeId: edge.edgeId, ownBytes: 1, sharedBytes: 1, reclaimableBytes: 1 }
  await api.db.edgeVersion.create({
    data: { ...facts, state: 'present', isLayer: true, isWritten: false, reportedAt: api.clock.now, scan: 1 },
    select: { edgeId: true },
  })
  // Only one whose start is not over stays.
  expect(await running()).toEqual([{ count: 1, names: ['pc-03'] }])
})

test.each([
  ['two', 0],
  ['three, of which two boot it', 1],
])('counts by type agree with the devices, own vDisk or their collection’s, of %s collections', async (_, more) => {
  const { api, tenant } = site()
  const { organizationId, farmId, siteId, vdiskId } = tenant
  const other = await api.db.vdisk.create({ data: { organizationId, farmId, name: 'Other' }, select: { id: true } })
  const file = { sizeBytes: 512, diskPath: 'a/2/disk.raw', commandLine: '' }
  await api.db.vdiskVersion.create({ data: { organizationId, vdiskId, number: 2, state: 'test', ...file } })
  const room = await api.db.collection.create({
    data: { organizationId, siteId, name: 'Elsewhere', vdiskId: other.id },
    select: { id: true },
  })
  const rooms = [tenant.collectionId, room.id]
  for (let count = 0; count < more; count++) {
    const data = { organizationId, siteId, name: 'Beside', vdiskId }
    rooms.push((await api.db.collection.create({ data, select: { id: true } })).id)
  }
  // Every combination of collection, own vDisk and type, each a different number of times.
  await api.db.$executeRaw`
    insert into device (organization_id, id, site_id, collection_id, name, mac, vdisk_id, device_type)
    select ${organizationId}::uuid, gen_random_uuid(), ${siteId}::uuid, collection_id, 'made-' || number, '06:00:00:00:00:' || lpad(to_hex(number), 2, '0'),
      case number % 3 when 0 then null when 1 then ${vdiskId}::uuid else ${other.id}::uuid end,
      (array['production', 'test', 'maintenance'])[1 + number / 3 % 3]::"DeviceType"
    from (select number, (${rooms}::uuid[])[1 + number % 7 % ${rooms.length}::integer] as collection_id
      from generate_series(1, 100) as number) as made`
  const [writer] = await api.db.device.findMany({
    where: { organizationId, deviceType: 'maintenance', vdiskId },
    orderBy: { name: 'asc' },
    take: 1,
    select: { id: true },
  })
  await api.db.vdisk.update({
    where: { organizationId_id: { organizationId, id: vdiskId } },
    data: { maintenanceDeviceId: writer?.id ?? null },
  })
  const devices = await api.db.device.findMany({
    where: { organizationId },
    orderBy: { name: 'asc' },
    select: { id: true, name: true, deviceType: true, vdiskId: true, collection: { select: { vdiskId: true } } },
  })
  const booting = devices.filter((device) => (device.vdiskId ?? device.collection.vdiskId) === vdiskId)
  const tallyOf = (some: typeof booting) => ({ count: some.length, names: some.map(({ name }) => name).slice(0, 3) })
  const { versions } = await read()
  const next = Object.fromEntries(versions.map((version) => [version.number, version.next]))
  // The maintenance version is not there yet: its writer gets what is in test, like the others of its type.
  const ofTest = booting.filter(({ deviceType }) => deviceType !== 'production')
  expect(ofTest.length).toBeGreaterThan(5)
  expect(next[2]).toEqual(tallyOf(ofTest))
  expect(next[1]).toEqual(tallyOf(booting.filter((device) => !ofTest.includes(device))))
})
