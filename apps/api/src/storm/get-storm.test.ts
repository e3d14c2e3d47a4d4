import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith, EdgeClient } from '../../test/edge-client.ts'
import { person } from '../../test/matrix/callers.ts'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { makeJoinToken } from '../../test/test-tenant.ts'
import { packedIdLength, packedMacLength, type Storm, stormDevicesMax } from './schema.ts'

const site = useTestSite('admin')
const secondUs = 1_000_000

function unpacked(packed: string, index: number): string {
  const text = packed.slice(index * packedIdLength, (index + 1) * packedIdLength)
  const hex = Buffer.from(text, 'base64url').toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** The cells by the device's name. */
function cellsOf({ cells, states, kinds, sites }: Storm) {
  return Object.fromEntries(
    cells.names.map((name, index) => [
      name,
      {
        id: unpacked(cells.ids, index),
        mac: cells.macs.slice(index * packedMacLength, (index + 1) * packedMacLength).replace(/..(?!$)/g, '$&:'),
        state: states[cells.states[index] ?? -1],
        site: sites.flatMap(({ name: siteName, deviceCount }) => Array(deviceCount).fill(siteName))[index],
        kind: kinds[cells.kinds[index] ?? -1]?.name,
        started: cells.startedTenths[index],
        took: cells.tookTenths[index],
        phase: cells.phaseTenths[index],
      },
    ]),
  )
}

/** A boot that began so many seconds ago. */
function bootOf(index: number, secondsAgo: number, changes: Partial<BootReport> = {}): BootReport {
  const { api, tenant } = site()
  const startedUnixMs = api.clock.now.getTime() - secondsAgo * 1000
  return bootWith({ id: randomUUID(), mac: tenant.macs[index] ?? '', startedUnixMs, ...changes })
}

/** In the kernel's start since 4 s. */
function inKernelStart(index: number, secondsAgo: number): BootReport {
  const { outcome: _ready, phases, ...boot } = bootOf(index, secondsAgo)
  const [dhcp] = phases
  if (!dhcp) throw new Error('a boot has phases')
  const { durationUs: _ended, ...open } = dhcp
  return { ...boot, phases: [dhcp, { ...open, name: 'breather', startUs: 4 * secondUs }] }
}

test('each device is one cell: the phase of its boot, its outcome, or why there is none', async () => {
  const { tenant } = site()
  const ready = bootOf(1, 30)
  const booting = inKernelStart(0, 40)
  const failed = bootOf(2, 50, { outcome: { kind: 'failed', phase: 'loader', cause: 'nbp_not_found' } })
  await site().report(booting, ready, failed, bootOf(3, 2 * 3600))
  await site().mutate('device.bootAgain', { deviceId: tenant.deviceIds[4] })
  const storm = await site().query<Storm>('storm.get', { siteId: tenant.siteId })
  const cells = cellsOf(storm)
  expect(Object.keys(cells)).toEqual(['pc-01', 'pc-02', 'pc-03', 'pc-04', 'pc-05', 'pc-06'])
  expect(cells['pc-01']).toMatchObject({
    id: booting.id,
    mac: tenant.macs[0],
    state: 'breather',
    phase: 40,
    started: 10 * (3600 - 40),
  })
  expect(cells['pc-02']).toMatchObject({ id: ready.id, state: 'ready', took: 30, phase: 0 })
  expect(cells['pc-03']).toMatchObject({ id: failed.id, state: 'failed' })
  expect(cells['pc-04']).toMatchObject({ id: tenant.deviceIds[3], state: 'idle', started: null })
  expect(cells['pc-05']).toMatchObject({ id: tenant.deviceIds[4], state: 'queued' })
  expect(cells['pc-06']).toMatchObject({ id: tenant.deviceIds[5], state: 'idle' })
  expect(storm).toMatchObject({ deviceCount: 6, site: { id: tenant.siteId }, run: null })
  // A longer look back brings the boot of two hours ago.
  const longer = await site().query<Storm>('storm.get', { siteId: tenant.siteId, minutes: 180 })
  expect(cellsOf(longer)['pc-04']).toMatchObject({ state: 'ready' })
})

test('what is usual comes from these boots, or from the last ones of the version; fewer than five are no measure', async () => {
  const { tenant } = site()
  const of = { vdiskId: tenant.vdiskId, versionId: tenant.versionId }
  const kindOf = async () => (await site().query<Storm>('storm.get', {})).kinds
  await site().report(...[0, 1, 2, 3].map((index) => bootOf(index, 3 * 3600 + index, of)))
  await site().report({ ...inKernelStart(5, 10), ...of })
  expect(await kindOf()).toEqual([
    { name: 'Linux, version 1', basis: null, readyCount: 0, p50Ms: null, phaseP50Ms: {} },
  ])
  await site().report(bootOf(4, 3 * 3600, of))
  const phaseP50Ms = { dhcp: 1000, stage2: 2000 }
  expect(await kindOf()).toMatchObject([{ basis: 'history', readyCount: 5, p50Ms: 3000, phaseP50Ms }])
  await site().report(...[0, 1, 2, 3, 4].map((index) => bootOf(index, 100, of)))
  expect(await kindOf()).toMatchObject([{ basis: 'storm', readyCount: 5, p50Ms: 3000, phaseP50Ms }])
})

test('the throughput of an edge is that of the last minute', async () => {
  const boot = bootOf(0, 120, { phases: bootOf(0, 0).phases.map((phase) => ({ ...phase, bytesOut: 6_000_000 })) })
  const [dhcp, stage2] = boot.phases
  if (!dhcp || !stage2) throw new Error('a boot has phases')
  // 12 MB in 120 s, half of them in the last minute.
  await site().report({ ...boot, phases: [dhcp, { ...stage2, durationUs: 119 * secondUs }] })
  const { edges } = await site().query<Storm>('storm.get', {})
  expect(edges).toMatchObject([{ online: expect.any(Boolean), bootingCount: 0, bytesPerSecond: 100_000 }])
})

test('a machine that nobody has registered is a cell by its MAC address, until somebody registers it', async () => {
  const { api, tenant } = site()
  const { organizationId, siteId, collectionId, farmId } = tenant
  const mac = '02:bf:00:00:09:09'
  const earlier = { ...bootOf(0, 90), mac }
  const boot = { ...inKernelStart(0, 40), mac }
  await site().report(bootOf(0, 30), earlier, boot, { ...bootOf(0, 2 * 3600), mac: '02:bf:00:00:09:08' })
  for (const scope of [{}, { siteId }, { farmId }]) {
    const storm = await site().query<Storm>('storm.get', scope)
    expect(cellsOf(storm)).toMatchObject({ [mac]: { id: boot.id, mac, state: 'breather', phase: 40 } })
    expect(storm.cells.unregistered.map((index) => storm.cells.names[index])).toEqual([mac])
    expect(storm.deviceCount).toBe(7)
  }
  expect((await site().query<Storm>('storm.get', { collectionId })).cells.names).not.toContain(mac)
  const scoped = await person(api, organizationId, { role: 'viewer', scope: { farmId, siteId, collectionId } })
  const seen = await query<Storm>(api, scoped.headers.cookie ?? '', 'storm.get', {})
  expect(seen.cells.names).not.toContain(mac)
  await api.db.device.create({ data: { organizationId, siteId, collectionId, name: 'new-pc', mac } })
  expect((await site().query<Storm>('storm.get', {})).cells).toMatchObject({ unregistered: [] })
})

test('a run shows its devices with their boots in it, whatever they did since', async () => {
  const { api, tenant } = site()
  const { organizationId } = tenant
  const at = new Date(api.clock.now.getTime() - 6 * 3600_000)
  const power = { power: 'wake_on_lan', ratePerMinute: 10 } as const
  const when = { kind: 'cron', cron: '0 7 * * *', timeZone: 'UTC', preparedUntil: at, updatedAt: at } as const
  const schedule = await api.db.schedule.create({
    data: { organizationId, farmId: tenant.farmId, name: 'Morning', createdAt: at, ...power, ...when },
  })
  const times = { instant: at, startedAt: at, closesAt: at, closedAt: at, createdAt: at }
  const run = await api.db.scheduleRun.create({
    data: {
      organizationId,
      scheduleId: schedule.id,
      action: 'power_on',
      deviceCount: 4,
      state: 'done',
      ...power,
      ...times,
    },
  })
  const inRun = bootOf(0, 6 * 3600 - 5)
  await site().report(inRun, bootOf(0, 60))
  const states = ['ready', 'not_seen', 'skipped', 'waiting'] as const
  for (const [position, state] of states.entries())
    await api.db.scheduleRunDevice.create({
      data: {
        organizationId,
        runId: run.id,
        deviceId: tenant.deviceIds[position] ?? '',
        position,
        state,
        bootId: position === 0 ? inRun.id : null,
      },
    })
  const storm = await site().query<Storm>('storm.get', { runId: run.id })
  const cells = cellsOf(storm)
  expect(Object.keys(cells)).toEqual(['pc-01', 'pc-02', 'pc-03', 'pc-04'])
  expect(cells['pc-01']).toMatchObject({ id: inRun.id, state: 'ready', started: 650 })
  expect([cells['pc-02']?.state, cells['pc-03']?.state, cells['pc-04']?.state]).toEqual([
    'no_response',
    'skipped',
    'queued',
  ])
  expect(storm.run).toMatchObject({ id: run.id, name: 'Morning', ratePerMinute: 10 })
})

test('a viewer of one collection sees its devices alone, and finds no other place', async () => {
  const { api, tenant } = site()
  const { organizationId, siteId, farmId } = tenant
  const other = await api.db.collection.create({ data: { organizationId, siteId, name: 'Library' } })
  const device = { organizationId, siteId, collectionId: other.id, name: 'library-01', mac: '02:bf:00:00:01:01' }
  await api.db.device.create({ data: device })
  const boot = bootOf(0, 30)
  await site().report(boot, { ...bootOf(0, 30), mac: device.mac })
  const scope = { farmId, siteId, collectionId: other.id }
  const { headers } = await person(api, organizationId, { role: 'viewer', scope })
  const ask = (input: object) => query<Storm>(api, headers.cookie ?? '', 'storm.get', input)
  expect(cellsOf(await ask({}))).toMatchObject({ 'library-01': { state: 'ready' } })
  expect((await ask({})).cells.names).toEqual(['library-01'])
  expect((await ask({ collectionId: other.id })).cells.names).toEqual(['library-01'])
  await expect(ask({ collectionId: tenant.collectionId })).rejects.toThrow()
  for (const absent of ['farmId', 'siteId', 'collectionId', 'runId'])
    expect(await site().tryQuery('storm.get', { [absent]: randomUUID() })).toMatchObject({ status: 404 })
})

test('a boot at a site that its device has left is not shown at the new one', async () => {
  const { api, tenant } = site()
  const { organizationId, farmId } = tenant
  await site().report(bootOf(0, 30))
  const moved = await api.db.site.create({ data: { organizationId, farmId, name: 'New', timeZone: 'UTC' } })
  const collection = await api.db.collection.create({ data: { organizationId, siteId: moved.id, name: 'New' } })
  await api.db.device.updateMany({
    where: { id: site().deviceId },
    data: { siteId: moved.id, collectionId: collection.id },
  })
  const cells = cellsOf(await site().query<Storm>('storm.get', {}))
  expect(cells['pc-01']).toMatchObject({ site: 'New', id: site().deviceId, state: 'idle' })
})

/** As many devices more, all of them in their last phase. */
async function manyBooting(count: number): Promise<void> {
  const { api, tenant } = site()
  const { organizationId, siteId, collectionId } = tenant
  const { edgeId } = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const hex = (value: number) => value.toString(16).padStart(2, '0')
  await api.db.device.createMany({
    data: Array.from({ length: count }, (_, index) => ({
      organizationId,
      siteId,
      collectionId,
      name: `room-101-pc-${String(index).padStart(4, '0')}`,
      mac: `02:bf:01:00:${hex(index >> 8)}:${hex(index & 255)}`,
    })),
  })
  // A first boot makes the partition of the day.
  await site().report(bootOf(0, 30))
  const at = api.clock.now
  const devices = await api.db.device.findMany({ where: { organizationId }, select: { id: true, mac: true } })
  const common = { organizationId, siteId, edgeId, receivedOn: new Date(at.toISOString().slice(0, 10)), receivedAt: at }
  const counts = { revision: 1n, totalUs: 123_456_789n, bytesOut: 1n, retries: 0n, simulated: true, generated: false }
  const phases = [
    { name: 'dhcp', startUs: 0, durationUs: 1 },
    { name: 'stage2', startUs: 98_765_432 },
  ]
  const boots = devices.map(({ id: deviceId, mac }, index) => {
    const startedAt = new Date(at.getTime() - 3_000_000 + index)
    return {
      id: randomUUID(),
      deviceId,
      mac,
      startedAt,
      updatedAt: at,
      lastPhase: 'stage2',
      phases,
      ...common,
      ...counts,
    }
  })
  await api.db.bootKey.createMany({
    data: boots.map(({ id: bootId, receivedOn }, index) => ({
      organizationId,
      bootId,
      receivedOn,
      change: BigInt(index) + 9n,
    })),
  })
  await api.db.boot.createMany({ data: boots })
  await api.db.$executeRaw`update device set last_boot_id = boot.id, last_boot_started_at = boot.started_at
    from boot where boot.device_id = device.id and boot.organization_id = ${organizationId}::uuid and boot.outcome is null`
}

test('5,000 devices that all boot are less than 380 KB, and of more those that booted last are shown', async () => {
  await manyBooting(stormDevicesMax)
  const answer = await site().query<Storm>('storm.get', {})
  expect(answer.deviceCount).toBe(stormDevicesMax + 6)
  expect(answer.cells.names).toHaveLength(stormDevicesMax)
  expect(new Set(answer.cells.states.map((state) => answer.states[state]))).toEqual(new Set(['stage2']))
  expect(JSON.stringify(answer).length).toBeLessThan(380_000)
})
