import { randomUUID } from 'node:crypto'
import { type BootReport, desiredState, type StateEnvelope } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { bootWith, guestWith } from '../../test/edge-client.ts'
import { openSubscription } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { BootDetail } from '../boot/schema.ts'
import type { DeviceDetail } from './schema.ts'

const site = useTestSite('operator')

const mac = '02:bf:00:00:00:01'
const ofTenant = (index = 0) => site().tenant.deviceIds[index] ?? ''
const clock = () => site().api.clock

async function report(changes: Partial<BootReport>): Promise<string> {
  const boot = bootWith({
    id: randomUUID(),
    mac,
    startedUnixMs: clock().now.getTime() - 60_000,
    ...changes,
  })
  await site().report(boot)
  return boot.id
}

const order = (kind: 'power_off' | 'restart', deviceId = ofTenant()) =>
  site().mutate<{ powerOrderId: string; expiresAt: string }>('device.orderPower', {
    deviceId,
    order: kind,
  })
const tryOrder = (deviceId: string) => site().tryMutation('device.orderPower', { deviceId, order: 'restart' })
const getDevice = (deviceId = ofTenant()) => site().query<DeviceDetail>('device.get', { deviceId })
const snapshot = () => site().state()

/** The devices of the list's filter, and their number in the overview. */
async function lostDevices(): Promise<[string[], number]> {
  const { items } = await site().query<{ items: { id: string }[] }>('device.list', { waitsFor: 'lost_disk' })
  const overview = await site().query<{ counts: { devicesLost: number } }>('farm.overview', {
    farmId: site().tenant.farmId,
  })
  return [items.map(({ id }) => id), overview.counts.devicesLost]
}

describe('a power order', () => {
  test('is in the desired state of the device’s site for a minute, and wakes the edge that waits', async () => {
    await report({})
    const { counter } = await snapshot()
    const listening = site().api.nextListener()
    const waiting = site().edge.state(`1.${counter}`, 25_000)
    await listening
    const { powerOrderId, expiresAt } = await order('power_off')
    const { body } = await waiting
    expect(desiredState.parse(JSON.parse((body as unknown as StateEnvelope).payload)).powerOrders).toEqual([
      { id: powerOrderId, deviceId: ofTenant(), mac, order: 'power_off' },
    ])
    expect(expiresAt).toBe(new Date(clock().now.getTime() + 60_000).toISOString())
    clock().advance(60_000)
    expect((await snapshot()).powerOrders).toEqual([])
  })

  test('waits, and has expired when the device did not report in time', async () => {
    await report({})
    const { powerOrderId } = await order('restart')
    expect((await getDevice()).powerOrder).toMatchObject({
      id: powerOrderId,
      order: 'restart',
      state: 'waiting',
      takenAt: null,
    })
    clock().advance(60_000)
    expect((await getDevice()).powerOrder).toMatchObject({ state: 'expired' })
    clock().advance(600_000)
    expect((await getDevice()).powerOrder).toBeNull()
  })

  test.each([
    ['power_off', 'off'],
    ['restart', 'restarting'],
  ] as const)('%s is taken when the boot says so, leaves the state, and the device is %s', async (kind, state) => {
    const id = await report({ guest: guestWith() })
    const { powerOrderId } = await order(kind)
    clock().advance(4_000)
    await report({ id, revision: 2, guest: guestWith({ powerOrderId }) })
    const takenAt = clock().now.toISOString()
    expect(await getDevice()).toMatchObject({
      powerOrder: { id: powerOrderId, state: 'taken', takenAt },
      now: { state, since: takenAt },
    })
    expect((await snapshot()).powerOrders).toEqual([])
    expect(await site().query<BootDetail>('boot.get', { bootId: id })).toMatchObject({
      takenPowerOrder: { id: powerOrderId, order: kind, takenAt },
    })
  })

  test('that was taken is sent to open pages, and keeps its time', async () => {
    const id = await report({ guest: guestWith() })
    const { powerOrderId } = await order('restart')
    const events = await openSubscription(site().api, { path: 'boot.onChange', cookie: site().cookie })
    await events.next()
    await report({ id, revision: 2, guest: guestWith({ powerOrderId }) })
    const takenAt = clock().now.toISOString()
    expect((await events.next()).data).toMatchObject({ boot: { takenPowerOrder: { takenAt } } })
    events.close()
    clock().advance(9_000)
    await report({ id, revision: 3, guest: guestWith({ powerOrderId }) })
    expect((await getDevice()).powerOrder).toMatchObject({ state: 'taken', takenAt })
  })

  test('that was taken in time is taken, however late its report comes', async () => {
    const id = await report({ guest: guestWith() })
    const { powerOrderId } = await order('power_off')
    clock().advance(120_000)
    await report({ id, revision: 2, guest: guestWith({ powerOrderId }) })
    expect((await getDevice()).powerOrder).toMatchObject({ state: 'taken' })
  })

  test('is over with the device’s next boot, which runs', async () => {
    const id = await report({ guest: guestWith() })
    const { powerOrderId } = await order('restart')
    await report({ id, revision: 2, guest: guestWith({ powerOrderId }) })
    clock().advance(30_000)
    await report({ guest: guestWith() })
    expect((await getDevice()).now).toMatchObject({ state: 'running' })
  })

  test('of another device or organization is not taken by a boot that names it', async () => {
    await report({})
    const { powerOrderId } = await order('restart')
    const secondMac = site().tenant.macs[1] ?? ''
    const second = await report({ mac: secondMac })
    await report({ id: second, mac: secondMac, revision: 2, guest: guestWith({ powerOrderId }) })
    const other = await site().other('viewer')
    await other.report(bootWith({ id: randomUUID(), mac, guest: guestWith({ powerOrderId }) }))
    expect((await getDevice()).powerOrder).toMatchObject({ state: 'waiting' })
    expect((await snapshot()).powerOrders).toHaveLength(1)
  })

  test('is refused for a device that does not run according to its reports', async () => {
    expect(await tryOrder(ofTenant(2))).toMatchObject({ status: 409, code: 'conflict' })
    await report({ mac: site().tenant.macs[2] ?? '', outcome: { kind: 'silent', phase: 'loader' } })
    expect(await tryOrder(ofTenant(2))).toMatchObject({ status: 409, code: 'conflict' })
  })

  test.each([
    ['refused', 'token_refused', /does not know its boot any more\. It waits to be restarted\.$/],
    ['refused', 'cache_lost', /has lost its writes\./],
    ['refused', undefined, /refused to continue its boot\./],
    ['version_changed', undefined, /has another version than the one that it booted\./],
    ['cache_lost', undefined, /has lost its writes\./],
  ] as const)(
    'reaches a device that has lost its disk for good (%s, %s), and waits',
    async (reason, refusal, sentence) => {
      const failed = { kind: 'failed', phase: 'stage2', cause: 'write_cache_lost' } as const
      const lost = { reason, refusal, atUs: 20_000_000 }
      const id = await report({ outcome: failed, lost })
      const since = new Date(clock().now.getTime() - 40_000).toISOString()
      const waits = { reason: 'lost_disk', edge: { id: site().edge.edgeId }, asked: null, since, restartsAt: null }
      expect((await getDevice()).waitsFor).toMatchObject(waits)
      expect((await getDevice()).waitsFor?.sentence).toMatch(sentence)
      expect(await site().query<BootDetail>('boot.get', { bootId: id })).toMatchObject({ waitsFor: waits })
      expect(await lostDevices()).toEqual([[ofTenant()], 1])
      const { powerOrderId } = await order('restart')
      expect((await snapshot()).powerOrders).toMatchObject([{ id: powerOrderId, mac, order: 'restart' }])
      await report({ id, revision: 2, outcome: failed, lost: { ...lost, powerOrderId } })
      expect(await getDevice()).toMatchObject({ powerOrder: { state: 'taken' }, waitsFor: null })
      expect(await lostDevices()).toEqual([[], 0])
      expect(await tryOrder(ofTenant())).toMatchObject({ status: 409, code: 'conflict' })
      await report({ guest: guestWith() })
      expect(await getDevice()).toMatchObject({ now: { state: 'running' }, waitsFor: null })
    },
  )

  test('does not reach a device that has lost its disk and is not heard any more', async () => {
    const outcome = { kind: 'failed', phase: 'stage2', cause: 'write_cache_lost' } as const
    const lost = { reason: 'cache_lost', atUs: 20_000_000, restartAtUs: 80_000_000 } as const
    const id = await report({ outcome, lost })
    const restartsAt = new Date(clock().now.getTime() + 20_000).toISOString()
    expect((await getDevice()).waitsFor).toMatchObject({ reason: 'lost_disk', restartsAt })
    expect((await getDevice()).waitsFor?.sentence).toMatch(/It restarts by itself\.$/)
    await report({ id, revision: 2, outcome, lost, silentSinceUs: 30_000_000 })
    expect((await getDevice()).waitsFor).toBeNull()
    expect(await lostDevices()).toEqual([[], 0])
    expect(await tryOrder(ofTenant())).toMatchObject({ status: 409, code: 'conflict' })
    await report({ id, revision: 3, outcome, lost })
    expect(await lostDevices()).toEqual([[ofTenant()], 1])
    // A later boot of the device, and no earlier one, ends it.
    await report({ startedUnixMs: clock().now.getTime() - 600_000 })
    expect(await lostDevices()).toEqual([[ofTenant()], 1])
    await report({ startedUnixMs: clock().now.getTime() - 1000, outcome: { kind: 'silent', phase: 'loader' } })
    expect(await lostDevices()).toEqual([[], 0])
  })

  test('is refused where no edge is left to hand it over', async () => {
    await report({})
    const { api, edge } = site()
    await api.db.edge.updateMany({ where: { id: edge.edgeId }, data: { revokedAt: api.clock.now } })
    expect(await tryOrder(ofTenant())).toMatchObject({ status: 409, code: 'conflict' })
  })

  test('is refused when ten wait already', async () => {
    await report({})
    const statuses = []
    for (let count = 0; count < 11; count++) statuses.push((await tryOrder(ofTenant())).status)
    expect(statuses.filter((status) => status === 409)).toHaveLength(1)
    expect((await snapshot()).powerOrders).toHaveLength(10)
  })

  test('is one of at most 1,024 in a state, which edges refuse as a whole when it holds more', async () => {
    const { api, tenant } = site()
    const [organizationId, now] = [tenant.organizationId, api.clock.now.getTime()]
    const times = { requestedAt: new Date(now), expiresAt: new Date(now + 60_000) }
    const wish = { organizationId, deviceId: ofTenant(), ...times }
    const wishes = Array.from({ length: 1025 }, () => wish)
    await api.db.powerOrder.createMany({ data: wishes.map((row) => ({ ...row, order: 'restart' as const })) })
    await api.db.powerOn.createMany({ data: wishes })
    const { powerOns, powerOrders } = await snapshot()
    expect([powerOns.length, powerOrders?.length]).toEqual([1024, 1024])
  })

  test('of a kind that there is not is refused', async () => {
    const answer = await site().tryMutation('device.orderPower', { deviceId: ofTenant(), order: 'explode' })
    expect([answer.status, answer.code]).toEqual([400, 'invalid'])
  })
})
