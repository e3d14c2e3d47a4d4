import { randomUUID } from 'node:crypto'
import { type BootReport, edgeOnlineWithinMs, type GuestReport } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { bootWith, EdgeClient } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { makeJoinToken } from '../../../test/test-tenant.ts'
import type { BootDetail, BootSummary } from '../../boot/schema.ts'
import type { DeviceDetail, DeviceSummary } from '../../device/schema.ts'

const site = useTestSite('owner')
let second: EdgeClient

beforeEach(async () => {
  second = await site().enrolEdge()
  for (const edge of [site().edge, second]) await edge.heartbeat()
})

const startedUnixMs = () => site().api.clock.now.getTime() - 60_000
type Class = NonNullable<NonNullable<GuestReport['writeCache']>['class']>

/** A device that runs, and whose writes are at its edge. */
function running(writeClass: Class = 'edge', changes: Partial<BootReport> = {}): BootReport {
  const writeCache = { usedBytes: 4096, sizeBytes: 1 << 20, atUs: 20_000_000, class: writeClass }
  const guest = { kernelStartUs: 4_000_000, steps: [], writeCache }
  return bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs: startedUnixMs(), guest, ...changes })
}

const reported = (boot: BootReport) => site().report(boot)
const again = (boot: BootReport, changes: Partial<BootReport>) => {
  Object.assign(boot, { revision: boot.revision + 1 }, changes)
  return site().report({ ...boot })
}

/** The device has asked the second edge, which tells of it. */
const asks = (boot: Pick<BootReport, 'id' | 'mac' | 'startedUnixMs'>, changes = {}) => {
  const { id: bootId, mac, startedUnixMs } = boot
  const said = { bootId, mac, startedUnixMs, edgeId: site().edge.edgeId, atUs: 30_000_000, ...changes }
  return site().send([{ type: 'waiting', ...said }], second)
}

const device = () => site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })
const bootOf = (bootId: string) => site().query<BootDetail>('boot.get', { bootId })
const waitCount = () => site().api.db.bootWait.count({ where: { organizationId: site().tenant.organizationId } })
const list = async <T>(path: string) => (await site().query<{ items: T[] }>(path, {})).items

test('a device that another edge sent back waits for its own, on its page, its boot’s and in the lists', async () => {
  const boot = running()
  await reported(boot)
  expect((await device()).waitsFor).toBeNull()
  await asks(boot)
  const since = new Date(boot.startedUnixMs + 30_000).toISOString()
  const waits = {
    reason: 'asked_another_edge',
    since,
    edge: { id: site().edge.edgeId },
    asked: { id: second.edgeId },
    sentence: expect.stringContaining('The control plane receives reports from'),
    remedy: expect.stringMatching(
      /^Check the network between \S+ and the device\. The device then continues .* writes\. If \S+ is permanently gone, restart the device\. Its writes since the last start are lost\.$/,
    ),
  }
  expect((await device()).waitsFor).toMatchObject(waits)
  expect((await bootOf(boot.id)).waitsFor).toMatchObject(waits)
  const devices = await list<DeviceSummary>('device.list')
  expect(devices.find(({ id }) => id === site().deviceId)?.waitsFor).toMatchObject(waits)
  expect((await list<BootSummary>('boot.list')).map(({ waitsFor }) => waitsFor)).toMatchObject([waits])
})

test('whoever watches boots hears that a device waits, and that it goes on', async () => {
  const boot = running()
  await reported(boot)
  const changeOf = async () =>
    (
      await site().api.db.bootKey.findFirstOrThrow({
        where: { organizationId: site().tenant.organizationId, bootId: boot.id },
      })
    ).change
  const before = await changeOf()
  await asks(boot)
  const waiting = await changeOf()
  expect(waiting).toBeGreaterThan(before)
  await again(boot, { resumedUs: 50_000_000 })
  expect(await changeOf()).toBeGreaterThan(waiting)
})

test.each([
  ['its edge says that it is back', { resumedUs: 50_000_000 }],
  ['its edge has lost its writes', { outcome: { kind: 'failed', phase: 'stage2', cause: 'write_cache_lost' } }],
  ['it started again', { outcome: { kind: 'superseded' } }],
] as const)('it waits no more when %s', async (_what, changes) => {
  const boot = running('edge', { outcome: undefined } as Partial<BootReport>)
  await reported(boot)
  await asks(boot)
  expect((await bootOf(boot.id)).waitsFor).not.toBeNull()
  await again(boot, changes)
  expect((await bootOf(boot.id)).waitsFor).toBeNull()
  expect((await device()).waitsFor).toBeNull()
  expect(await waitCount()).toBe(0)
})

test('it still waits when its edge tells only of what was before, or hears nothing of it', async () => {
  const boot = running('edge', { resumedUs: 10_000_000 })
  await reported(boot)
  await asks(boot)
  for (const changes of [{ reconnects: 3 }, { silentSinceUs: 29_000_000 }]) {
    await again(boot, changes)
    expect((await bootOf(boot.id)).waitsFor).toMatchObject({ reason: 'asked_another_edge' })
  }
})

test('a device that begins another boot waits no more, at whichever edge', async () => {
  const boot = running()
  await reported(boot)
  await asks(boot)
  const next = running('edge', { startedUnixMs: boot.startedUnixMs + 40_000 })
  await site().send([{ type: 'boot', boot: next }], second)
  expect((await device()).waitsFor).toBeNull()
  for (const { id } of [boot, next]) expect((await bootOf(id)).waitsFor).toBeNull()
  expect(await waitCount()).toBe(0)
  // The second edge was cut off meanwhile, and tells of it late.
  await asks(boot, { atUs: 35_000_000 })
  expect(await waitCount()).toBe(0)
})

test('what another edge tells late, after the device was back, is nothing any more; what it tells early is kept', async () => {
  const boot = running('edge', { resumedUs: 50_000_000 })
  await reported(boot)
  await asks(boot)
  expect((await device()).waitsFor).toBeNull()
  const unknown = running('edge', { id: randomUUID(), startedUnixMs: boot.startedUnixMs + 1000 })
  await asks(unknown)
  await reported(unknown)
  expect((await device()).waitsFor).toMatchObject({ reason: 'asked_another_edge' })
  // Sends the same again, from before a restart of the edge, and something newer.
  await asks(unknown, { atUs: 20_000_000 })
  const at = (us: number) => new Date(unknown.startedUnixMs + us / 1000).toISOString()
  expect((await device()).waitsFor?.since).toBe(at(30_000_000))
  await asks(unknown, { atUs: 40_000_000 })
  expect((await device()).waitsFor?.since).toBe(at(40_000_000))
})

test('an edge tells of devices that wait for another one of its own site, and of no others', async () => {
  const boot = running()
  await reported(boot)
  const stranger = await site().other('owner')
  const { farmId } = site().tenant
  const hall = await site().mutate<{ id: string }>('site.create', { farmId, name: 'Hall', timeZone: 'UTC' })
  const token = await makeJoinToken(site().api, { ...site().tenant, siteId: hall.id })
  const elsewhere = await EdgeClient.enrolled(site().api.url, token)
  for (const edgeId of [second.edgeId, elsewhere.edgeId, stranger.edge.edgeId, randomUUID()])
    await asks(boot, { edgeId })
  expect((await device()).waitsFor).toBeNull()
  await stranger.send([
    {
      type: 'waiting',
      bootId: boot.id,
      mac: boot.mac,
      edgeId: stranger.edge.edgeId,
      startedUnixMs: boot.startedUnixMs,
      atUs: 1,
    },
  ])
  expect((await device()).waitsFor).toBeNull()
})

test.each([
  ['edge', /restart the device\. Its writes since the last start are lost/],
  ['device_ram_overflow', /restart the device/],
  ['private', /revoke it and move the persistent-write location .*device\.moveHome.* are lost/],
] as const)(
  'of a device whose writes (%s) are at an edge that is not heard this is told without anybody asking',
  async (writeClass, remedy) => {
    const boot = running(writeClass)
    await reported(boot)
    expect((await device()).waitsFor).toBeNull()
    const heardAt = site().api.clock.now.toISOString()
    site().api.clock.advance(edgeOnlineWithinMs)
    const waits = { reason: 'edge_not_heard', asked: null, since: heardAt, edge: { id: site().edge.edgeId } }
    expect((await device()).waitsFor).toMatchObject({ ...waits, remedy: expect.stringMatching(remedy) })
    expect((await bootOf(boot.id)).waitsFor).toMatchObject(waits)
    await site().edge.heartbeat()
    expect((await device()).waitsFor).toBeNull()
  },
)

test('of one that is off, or writes to its own memory, nothing is told', async () => {
  await reported(running('device_ram'))
  site().api.clock.advance(edgeOnlineWithinMs)
  expect((await device()).waitsFor).toBeNull()
  await site().edge.heartbeat()
  await reported(running('edge', { startedUnixMs: startedUnixMs() + 30_000, silentSinceUs: 20_000_000 }))
  site().api.clock.advance(edgeOnlineWithinMs)
  expect((await device()).waitsFor).toBeNull()
})

test('a device that was never started is told of, where its home is away; with what a removed home means', async () => {
  const { organizationId, vdiskId } = site().tenant
  await site().api.db.vdisk.updateMany({
    where: { organizationId, id: vdiskId },
    data: { writeCache: 'private' },
  })
  await site().state()
  const { home } = await device()
  const edge = home?.edge.id === second.edgeId ? second : site().edge
  const other = edge === second ? site().edge : second
  expect((await device()).waitsFor).toBeNull()
  site().api.clock.advance(edgeOnlineWithinMs)
  await other.heartbeat()
  expect((await device()).waitsFor).toMatchObject({
    reason: 'edge_not_heard',
    edge: { id: edge.edgeId },
    sentence: expect.stringContaining('cannot start'),
  })
  await site().revokeEdge(edge.edgeId)
  expect((await device()).waitsFor).toMatchObject({
    sentence: expect.stringContaining('was removed'),
    remedy: expect.stringMatching(/^Move the persistent-write location .*device\.moveHome.*permanently lost/),
  })
  const { deviceId } = site()
  await site().mutate('device.moveHome', { deviceId, edgeId: other.edgeId, giveUp: true })
  expect((await device()).waitsFor).toBeNull()
})
