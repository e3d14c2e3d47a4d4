import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith, guestWith } from '../../../test/edge-client.ts'
import { openSubscription } from '../../../test/test-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import type { DeviceDetail } from '../../device/schema.ts'

const site = useTestSite('operator')

const bootIds = async () => (await site().query<{ items: { id: string }[] }>('boot.list', {})).items.map(({ id }) => id)
const device = () => site().query<DeviceDetail>('device.get', { deviceId: site().tenant.deviceIds[0] ?? '' })
const withdraw = (bootId: string, edge = site().edge) =>
  site().send([{ type: 'withdrawn', bootId, toEdgeId: randomUUID() }], edge)
/** A boot that got ready, unless changed. */
const reportBoot = async (changes: Partial<BootReport> = {}) => {
  const startedUnixMs = site().api.clock.now.getTime() - 60_000
  const ready = bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs, ...changes })
  await site().report(ready)
  return ready.id
}
/** Goes on. */
const boot = (id: string, changes = {}) => {
  const { outcome: _none, ...goingOn } = bootWith({
    id,
    mac: site().tenant.macs[0] ?? '',
    startedUnixMs: site().api.clock.now.getTime() - 60_000,
  })
  return { type: 'boot' as const, boot: { ...goingOn, ...changes } }
}

test('a withdrawn boot is in no list, and its device’s last boot is the one before', async () => {
  const before = await reportBoot({
    startedUnixMs: site().api.clock.now.getTime() - 600_000,
    guest: guestWith(),
  })
  const id = randomUUID()
  await site().send([boot(id)])
  expect((await device()).lastBoot?.id).toBe(id)
  await withdraw(id)
  expect(await bootIds()).toEqual([before])
  expect(await device()).toMatchObject({
    lastBoot: { id: before, outcome: 'ready' },
    now: { state: 'running' },
  })
})

test('without a boot before, its device has never booted', async () => {
  const id = randomUUID()
  await site().send([boot(id)])
  await withdraw(id)
  expect(await device()).toMatchObject({ lastBoot: null, now: { state: 'unknown' } })
})

test('a later report of it does not bring it back, in the same batch or after', async () => {
  const [first, second] = [randomUUID(), randomUUID()]
  await site().send([boot(first), { type: 'withdrawn', bootId: first }, boot(first, { revision: 2 })])
  await site().send([boot(first, { revision: 3, outcome: { kind: 'ready' } })])
  await withdraw(second)
  await site().send([boot(second)])
  expect(await bootIds()).toEqual([])
})

test('one that got ready stays', async () => {
  const id = await reportBoot()
  await withdraw(id)
  expect(await bootIds()).toEqual([id])
  expect((await device()).lastBoot?.id).toBe(id)
})

test('only the edge that reported it can withdraw it', async () => {
  const id = randomUUID()
  await site().send([boot(id)])
  await withdraw(id, await site().enrolEdge())
  expect(await bootIds()).toEqual([id])
  await site().send([boot(id, { revision: 2, outcome: { kind: 'ready' } })])
  expect((await device()).lastBoot).toMatchObject({ id, outcome: 'ready' })
})

test('open pages are told, also those that were away meanwhile', async () => {
  const { api, cookie } = site()
  const events = await openSubscription(api, { path: 'boot.onChange', cookie })
  await events.next()
  const [id, other] = [randomUUID(), randomUUID()]
  await site().send([boot(id)])
  const { id: lastEventId } = await events.next()
  await withdraw(id)
  expect((await events.next()).data).toEqual({ kind: 'withdrawn', bootId: id })
  events.close()
  await site().send([boot(other)])
  const after = await openSubscription(api, { path: 'boot.onChange', cookie, lastEventId })
  await after.next()
  const missed = [await after.next(), await after.next()]
  expect(missed.map(({ data }) => data)).toMatchObject([
    { kind: 'withdrawn', bootId: id },
    { kind: 'boot', boot: { id: other } },
  ])
  after.close()
})
