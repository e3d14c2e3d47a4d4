import { randomBytes, randomUUID } from 'node:crypto'
import type { DeviceKeyReport } from '@bootfarm/proto/uplink'
import { beforeEach, describe, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { CollectionDetail } from '../collection/schema.ts'
import type { FarmOverview } from '../farm/schema.ts'
import type { DeviceDetail, DeviceSummary } from './schema.ts'

const site = useTestSite('owner')
const key = () => randomBytes(32).toString('hex')

/** The edge reports its judgement on the newest boot of one of the devices. */
async function judged(label: DeviceKeyReport['label'], claimed?: string, { index = 0, revision = 0 } = {}) {
  const mac = site().tenant.macs[index] ?? ''
  site().api.clock.advance(1_000)
  const startedUnixMs = site().api.clock.now.getTime()
  const proved = claimed ? { key: Buffer.from(claimed, 'hex').toString('base64') } : {}
  const boot = { ...bootWith({ id: randomUUID(), mac, startedUnixMs }), deviceKey: { label, revision, ...proved } }
  await site().report(boot)
}

const deviceIdOf = (index: number) => site().tenant.deviceIds[index] ?? ''
const device = (index = 0) => site().query<DeviceDetail>('device.get', { deviceId: deviceIdOf(index) })
const decide = (decision: string, more: object = {}) =>
  site().tryMutation('device.decideKey', { deviceId: site().deviceId, decision, keyRevision: 0, ...more })
const stated = async () => (await site().state()).devices.find(({ id }) => id === site().deviceId)

describe('a person', () => {
  test('approves a changed key: the edges get it with their next state, and the log has who did it', async () => {
    const [old, other] = [key(), key()]
    await judged('key_known', old)
    await judged('key_changed', other)
    expect(await decide('approve', { claimedKey: other.toUpperCase() })).toMatchObject({
      status: 200,
      data: { keyLabel: 'key_known', keyRevision: 1 },
    })
    expect(await device()).toMatchObject({
      keyLabel: 'key_known',
      claimedKey: null,
      key: { known: other, revision: 1, decidedBy: 'A owner', claim: null },
    })
    expect(await stated()).toMatchObject({ key: Buffer.from(other, 'hex').toString('base64'), keyRevision: 1 })
    const { items } = await site().query<{ items: object[] }>('audit.list', { action: 'device.decideKey' })
    expect(items).toMatchObject([
      {
        actorKind: 'person',
        objectName: 'pc-01',
        before: { key: old, keyLabel: 'key_changed' },
        after: { key: other, keyLabel: 'key_known' },
      },
    ])
  })

  test('keeps the known key: the alarm ends, its late repetition is none, and the same claim later is one again', async () => {
    const [known, other] = [key(), key()]
    await judged('key_known', known)
    await judged('key_changed', other)
    expect((await decide('keep')).status).toBe(200)
    await judged('key_changed', other)
    expect(await device()).toMatchObject({ keyLabel: 'key_known', key: { known, revision: 1, claim: null } })
    await judged('key_changed', other, { revision: 1 })
    expect(await device()).toMatchObject({ keyLabel: 'key_changed', claimedKey: other })
    const { items } = await site().query<{ items: object[] }>('audit.list', { action: 'device.decideKey' })
    expect(items).toMatchObject([{ after: { keyRefused: other } }])
  })

  test('forgets a key: the next one is accepted as the first', async () => {
    await judged('key_known', key())
    expect((await decide('forget')).status).toBe(200)
    expect(await stated()).toMatchObject({ keyRevision: 1 })
    expect(await stated()).not.toHaveProperty('key')
    const next = key()
    await judged('key_known', next, { revision: 1 })
    expect(await device()).toMatchObject({
      keyLabel: 'key_known',
      key: { known: next, revision: 1, decidedBy: null },
    })
  })

  test('says that a device has no key: a key that it proves later is an alarm', async () => {
    await judged('no_key')
    expect((await decide('keyless')).status).toBe(200)
    expect(await stated()).toMatchObject({ keyless: true, keyRevision: 1 })
    await judged('key_changed', key(), { revision: 1 })
    expect(await device()).toMatchObject({ keyLabel: 'key_changed', key: { keyless: true, known: null } })
  })
})

describe('a decision is refused', () => {
  test('where the device has proved another key since the page was loaded, with that key', async () => {
    const [seen, other] = [key(), key()]
    await judged('key_known', key())
    await judged('key_changed', seen)
    await judged('key_changed', other)
    expect(await decide('approve', { claimedKey: seen })).toMatchObject({
      status: 409,
      text: expect.stringContaining(`pc-01 has proved another key since: ${other}. Compare it`),
    })
    expect(await decide('approve')).toMatchObject({ status: 409 })
    expect((await device()).keyLabel).toBe('key_changed')
  })

  test('where somebody else has decided meanwhile, with who and when', async () => {
    await judged('key_known', key())
    await decide('forget')
    expect(await decide('keyless')).toMatchObject({
      status: 409,
      text: expect.stringMatching(/A owner has decided on the key of pc-01 at \d\d:\d\d UTC\. Load the device again/),
    })
    expect((await device()).key).toMatchObject({ keyless: false, revision: 1 })
  })

  test('where there is nothing to decide', async () => {
    for (const [decision, text] of [
      ['keep', 'There is no alarm to dismiss.'],
      ['forget', 'No key of it is known.'],
    ] as const)
      expect(await decide(decision)).toMatchObject({ status: 409, text: expect.stringContaining(text) })
    expect(await decide('approve', { claimedKey: key() })).toMatchObject({
      status: 409,
      text: expect.stringContaining('no key that waits'),
    })
    expect(await decide('approve', { claimedKey: 'abc' })).toMatchObject({ status: 400 })
  })

  test('to whoever may only look', async () => {
    const viewer = await signInAs(site().api, site().tenant.organizationId, 'viewer')
    const input = { deviceId: site().deviceId, decision: 'keyless', keyRevision: 0 }
    expect(await site().tryMutation('device.decideKey', input, viewer)).toMatchObject({ status: 403 })
  })

  test('of two at once exactly one counts', async () => {
    await judged('key_known', key())
    const answers = await Promise.all([decide('forget'), decide('keyless'), decide('forget')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    expect((await device()).key.revision).toBe(1)
  })
})

describe('the keys of a classroom', () => {
  const keys = () => site().query<CollectionDetail>('collection.get', { collectionId: site().tenant.collectionId })
  const approve = async (seen: CollectionDetail['keys']) =>
    site().tryMutation('device.approveKeys', {
      collectionId: site().tenant.collectionId,
      claimedUntil: seen.waitingUntil,
      waitingCount: seen.waitingCount,
    })
  const all = () => site().tenant.macs.map((_mac, index) => index)

  beforeEach(async () => {
    const { revision } = await keys()
    await site().mutate('collection.update', {
      collectionId: site().tenant.collectionId,
      revision,
      keyLearn: 'approve',
      keyWithout: 'shared',
    })
    for (const index of all()) await judged('key_waits', key(), { index, revision: 1 })
  })

  test('are approved at once, each its own, and the log names every device', async () => {
    const seen = (await keys()).keys
    expect(seen).toMatchObject({ alarmCount: 0, waitingCount: all().length })
    const claimed = await Promise.all(all().map(async (index) => (await device(index)).claimedKey))
    expect(await approve(seen)).toMatchObject({ status: 200, data: { count: all().length } })
    for (const index of all())
      expect(await device(index)).toMatchObject({
        keyLabel: 'key_known',
        key: { known: claimed[index], revision: 2, decidedBy: 'A owner' },
      })
    expect((await keys()).keys).toEqual({ alarmCount: 0, waitingCount: 0, waitingUntil: null })
    const { items } = await site().query<{ items: object[] }>('audit.list', { action: 'device.approveKeys' })
    expect(items).toHaveLength(all().length)
  })

  test.each([
    ['a device has proved another key since', () => judged('key_waits', key(), { revision: 1 })],
    ['somebody else has decided on one', () => decide('keyless', { keyRevision: 1 })],
  ] as const)('stay as they are where %s', async (_what, happens) => {
    const seen = (await keys()).keys
    await happens()
    expect(await approve(seen)).toMatchObject({
      status: 409,
      text: expect.stringContaining(`${seen.waitingCount - 1} of the ${seen.waitingCount} keys that you have seen`),
    })
    expect((await device(1)).keyLabel).toBe('key_waits')
  })

  test('that were reported after the list was read wait on, and so does an alarm', async () => {
    await decide('forget', { keyRevision: 1 })
    await judged('signature_invalid', undefined, { index: 1, revision: 1 })
    const seen = (await keys()).keys
    expect(seen).toMatchObject({ alarmCount: 1, waitingCount: all().length - 2 })
    await judged('key_waits', key(), { revision: 2 })
    expect((await approve(seen)).status).toBe(200)
    expect((await device()).keyLabel).toBe('key_waits')
    expect((await device(1)).keyLabel).toBe('signature_invalid')
  })
})

test('lists filter by the key, and the farm counts alarms and keys that wait', async () => {
  await judged('key_known', key())
  await judged('signature_invalid', undefined, { index: 1 })
  const names = async (filter: string) =>
    (await site().query<{ items: DeviceSummary[] }>('device.list', { key: filter })).items.map(({ name }) => name)
  expect(await names('key_known')).toEqual(['pc-01'])
  expect(await names('alarm')).toEqual(['pc-02'])
  expect(await names('signature_invalid')).toEqual(['pc-02'])
  expect(await names('key_waits')).toEqual([])
  expect(await names('unjudged')).not.toContain('pc-01')
  const { counts } = await site().query<FarmOverview>('farm.overview', { farmId: site().tenant.farmId })
  expect(counts).toMatchObject({ keyAlarms: 1, keysWaiting: 0 })
})

test('a new collection accepts first keys and refuses nothing, and its log shows a change of that', async () => {
  const { siteId } = site().tenant
  const { id, revision } = await site().mutate<{ id: string; revision: number }>('collection.create', {
    siteId,
    name: 'New',
  })
  const policy = async () => {
    const { keyLearn, keyWithout } = await site().query<CollectionDetail>('collection.get', { collectionId: id })
    return { keyLearn, keyWithout }
  }
  expect(await policy()).toEqual({ keyLearn: 'accept_first', keyWithout: 'everything' })
  await site().mutate('collection.update', { collectionId: id, revision, keyWithout: 'nothing' })
  expect(await policy()).toEqual({ keyLearn: 'accept_first', keyWithout: 'nothing' })
  const { items } = await site().query<{ items: object[] }>('audit.list', { action: 'collection.update' })
  expect(items).toMatchObject([{ before: { keyWithout: 'everything' }, after: { keyWithout: 'nothing' } }])
  // Somebody else has the page of before, and does not overwrite it unseen.
  const stale = await site().tryMutation('collection.update', { collectionId: id, revision, keyWithout: 'shared' })
  expect(stale).toMatchObject({ status: 409, text: expect.stringContaining('changed key without') })
  expect((await policy()).keyWithout).toBe('nothing')
})
