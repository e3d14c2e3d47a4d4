import { randomBytes, randomUUID } from 'node:crypto'
import type { DeviceKeyReport } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { bootWith, type EdgeClient } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import type { BootDetail } from '../../boot/schema.ts'
import type { DeviceDetail } from '../../device/schema.ts'

const site = useTestSite('owner')
let second: EdgeClient
let minute = 0

beforeEach(async () => {
  second = await site().enrolEdge()
  minute = 0
})

const key = () => randomBytes(32).toString('base64')
const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex')

/** The device has booted, and its edge has judged it. Each boot is a minute after the one before. */
async function judged(
  deviceKey: DeviceKeyReport,
  { edge = site().edge, bootId = randomUUID(), generated = false } = {},
) {
  minute += 1
  const startedUnixMs = site().api.clock.now.getTime() - 3_600_000 + minute * 60_000
  const boot = { ...bootWith({ id: bootId, mac: site().mac, startedUnixMs, generated }), deviceKey }
  await site().send([{ type: 'boot', boot }], edge)
  return boot
}

const device = () => site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })
const stated = async (edge = site().edge) => {
  const state = await site().state(edge)
  const { keyPolicy, key, keyless, keyRevision } = state.devices.find(({ id }) => id === site().deviceId) ?? {}
  return { policy: keyPolicy === undefined ? null : state.keyPolicies?.[keyPolicy], key, keyless, keyRevision }
}
const setPolicy = async (fields: object) => {
  const { collectionId } = site().tenant
  const { revision } = await site().query<{ revision: number }>('collection.get', { collectionId })
  await site().mutate('collection.update', { collectionId, revision, ...fields })
}

test('the first key that an edge accepts is known: on the device’s page, in the log, and at every edge', async () => {
  const first = key()
  const boot = await judged({ label: 'key_known', key: first })
  expect(await device()).toMatchObject({
    keyLabel: 'key_known',
    key: { known: hex(first), keyless: false, revision: 0, decidedBy: null, claim: null },
  })
  expect((await device()).key.decidedAt).toBe(site().api.clock.now.toISOString())
  for (const edge of [site().edge, second]) expect((await stated(edge)).key).toBe(first)
  expect((await site().query<BootDetail>('boot.get', { bootId: boot.id })).facts.deviceKey).toBe('key_known')
  const { items } = await site().query<{ items: object[] }>('audit.list', { action: 'device.acceptKey' })
  expect(items).toMatchObject([{ actorKind: 'edge', objectName: 'pc-01', after: { key: hex(first) } }])
})

test('of two edges that accept different keys the one that reports first is right, and the other device is an alarm', async () => {
  const [mine, other] = [key(), key()]
  await judged({ label: 'key_known', key: mine })
  const boot = await judged({ label: 'key_known', key: other }, { edge: second })
  expect(await device()).toMatchObject({
    keyLabel: 'key_changed',
    claimedKey: hex(other),
    key: { known: hex(mine), claim: { key: hex(other), bootId: boot.id } },
  })
  for (const edge of [site().edge, second]) expect((await stated(edge)).key).toBe(mine)
  // The right device boots again: a person still has to see that there are two.
  await judged({ label: 'key_known', key: mine })
  expect((await device()).keyLabel).toBe('key_changed')
})

test('two edges report at the same time: one key is known, and the other one is the alarm', async () => {
  const keys = [key(), key()]
  await Promise.all([
    judged({ label: 'key_known', key: keys[0] }),
    judged({ label: 'key_known', key: keys[1] }, { edge: second }),
  ])
  const { keyLabel, claimedKey, key: view } = await device()
  expect(keyLabel).toBe('key_changed')
  expect([view.known, claimedKey].sort()).toEqual(keys.map((one) => hex(one ?? '')).sort())
})

test('where keys are approved, one waits, and no edge is told of it', async () => {
  await setPolicy({ keyLearn: 'approve', keyWithout: 'shared' })
  expect(await stated()).toEqual({
    policy: { learn: 'approve', without: 'shared' },
    key: undefined,
    keyless: undefined,
    // Edges forget what only they have accepted.
    keyRevision: 1,
  })
  const waits = key()
  await judged({ label: 'key_waits', key: waits, revision: 1 })
  expect(await device()).toMatchObject({ keyLabel: 'key_waits', claimedKey: hex(waits), key: { known: null } })
  expect((await stated()).key).toBeUndefined()
})

test('an edge that had accepted a key before approvals were required reports it too late', async () => {
  await setPolicy({ keyLearn: 'approve' })
  await judged({ label: 'key_known', key: key() })
  expect(await device()).toMatchObject({ keyLabel: null, key: { known: null, claim: null } })
})

test('a device that moves to another collection keeps a known key; edges forget one that only they know', async () => {
  const { siteId, deviceIds } = site().tenant
  const { id: collectionId } = await site().mutate<{ id: string }>('collection.create', { siteId, name: 'Next door' })
  const known = key()
  await judged({ label: 'key_known', key: known })
  const [, unknown = ''] = deviceIds
  await site().mutate('device.changeMany', { deviceIds: [site().deviceId, unknown], collectionId })
  expect(await device()).toMatchObject({ keyLabel: 'key_known', key: { known: hex(known), revision: 0 } })
  const other = await site().query<DeviceDetail>('device.get', { deviceId: unknown })
  expect(other.key).toMatchObject({ known: null, revision: 1 })
})

test('a made-up history, a device of another site and an older edge say nothing of keys', async () => {
  await judged({ label: 'key_known', key: key() }, { generated: true })
  expect((await device()).keyLabel).toBeNull()
  const elsewhere = await site().other('owner')
  const boot = { ...bootWith({ id: randomUUID(), mac: site().mac }), deviceKey: { label: 'no_key' as const } }
  await elsewhere.send([{ type: 'boot', boot }])
  expect((await device()).keyLabel).toBeNull()
  await site().report(bootWith({ id: randomUUID(), mac: site().mac }))
  expect((await device()).keyLabel).toBeNull()
})

test('boots of one batch count in their order', async () => {
  const [first, other] = [key(), key()]
  const boots = [first, other].map((one, index) => ({
    ...bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs: site().api.clock.now.getTime() - 60_000 + index }),
    deviceKey: { label: 'key_known' as const, key: one },
  }))
  await site().report(...boots)
  expect(await device()).toMatchObject({ keyLabel: 'key_changed', key: { known: hex(first) }, claimedKey: hex(other) })
})

test('the end of an earlier boot without a key raises no alarm once the device has shown its key', async () => {
  const before = await judged({ label: 'no_key' })
  expect((await device()).keyLabel).toBe('no_key')
  await judged({ label: 'key_known', key: key() })
  await site().report({ ...before, revision: before.revision + 1 })
  expect((await device()).keyLabel).toBe('key_known')
})

test('whoever watches alarms gets one message for each kind of alarm, until a person decides', async () => {
  const { organizationId } = site().tenant
  await site().mutate('webhook.create', {
    name: 'Alarms',
    url: 'https://hooks.example/in',
    events: ['device.key_alarm'],
  })
  const events = () => site().api.db.webhookEvent.findMany({ where: { organizationId, type: 'device.key_alarm' } })
  const known = key()
  await judged({ label: 'key_known', key: known })
  expect(await events()).toEqual([])
  const other = key()
  const boot = await judged({ label: 'key_changed', key: other })
  for (const _again of [1, 2]) await judged({ label: 'key_changed', key: key() })
  expect((await events()).map(({ payload }) => payload)).toMatchObject([
    {
      type: 'device.key_alarm',
      data: {
        deviceId: site().deviceId,
        deviceName: 'pc-01',
        mac: site().mac,
        edgeId: site().edge.edgeId,
        bootId: boot.id,
        label: 'key_changed',
        knownKey: hex(known),
        claimedKey: hex(other),
      },
    },
  ])
  await judged({ label: 'signature_invalid' })
  const keep = { deviceId: site().deviceId, decision: 'keep' }
  await site().mutate('device.decideKey', { ...keep, keyRevision: 0 })
  await judged({ label: 'key_changed', key: other, revision: 1 })
  expect(await events()).toHaveLength(2)
})
