import type { DeviceKeyReport } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { type DeviceKey, decideKey, type KeyDecision, type KeyLearning, takeKeyReport } from './device-key.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const earlier = new Date('2026-11-20T11:00:00.000Z')
const [one, two, three] = ['11', '22', '33'].map((byte) => byte.repeat(32)) as [string, string, string]

const nothing: DeviceKey = {
  key: null,
  keyless: false,
  revision: 0,
  label: null,
  claimed: null,
  claimBootId: null,
  claimedAt: null,
}
const known: DeviceKey = { ...nothing, key: one, label: 'key_known' }
const keyless: DeviceKey = { ...nothing, keyless: true, label: 'no_key' }
const claim = { claimBootId: 'boot 0', claimedAt: earlier }
const waiting: DeviceKey = { ...nothing, ...claim, label: 'key_waits', claimed: two }
const changed: DeviceKey = { ...known, ...claim, label: 'key_changed', claimed: two }

const said = (label: DeviceKeyReport['label'], key?: string, revision?: number): DeviceKeyReport => ({
  label,
  ...(key ? { key: Buffer.from(key, 'hex').toString('base64') } : {}),
  ...(revision === undefined ? {} : { revision }),
})
const facts = { learn: 'accept_first' as KeyLearning, bootId: 'boot 1', isNewestBoot: true, now }
const take = (device: DeviceKey, report: DeviceKeyReport, more: Partial<typeof facts> = {}) =>
  takeKeyReport(device, report, { ...facts, ...more })
const claimed = (label: DeviceKey['label'], key: string | null) => ({
  label,
  claimed: key,
  claimBootId: 'boot 1',
  claimedAt: now,
})

describe('the first key that an edge has accepted', () => {
  test('is the device’s, where the collection accepts first keys', () => {
    expect(take(nothing, said('key_known', one))).toEqual(known)
    expect(take(waiting, said('key_known', one))).toEqual(known)
    expect(take({ ...nothing, label: 'no_key' }, said('key_known', one), { isNewestBoot: false })).toEqual(known)
  })

  test('waits, where the collection requires an approval by now', () => {
    expect(take(nothing, said('key_known', one), { learn: 'approve' })).toEqual({
      ...nothing,
      ...claimed('key_waits', one),
    })
  })

  test('is an alarm, where another edge’s report came first', () => {
    for (const isNewestBoot of [true, false])
      expect(take(known, said('key_known', two), { isNewestBoot })).toEqual({
        ...known,
        ...claimed('key_changed', two),
      })
    expect(take(keyless, said('key_known', two))).toEqual({ ...keyless, ...claimed('key_changed', two) })
  })

  test('does not end an alarm', () => {
    const forged: DeviceKey = { ...nothing, ...claim, label: 'signature_invalid' }
    expect(take(forged, said('key_known', one))).toEqual({ ...forged, key: one })
  })
})

test('a report by an older decision than the last one changes nothing; one by a later one counts', () => {
  for (const report of [said('key_known', two, 1), said('key_changed', two), said('no_key')])
    expect(take({ ...known, revision: 2 }, report)).toBeNull()
  expect(take({ ...known, revision: 2 }, said('key_changed', two, 2))?.label).toBe('key_changed')
  expect(take({ ...known, revision: 2 }, said('key_changed', two, 3))?.label).toBe('key_changed')
})

test.each(['key_known', 'key_waits', 'key_changed'] as const)(
  'the known key is known, even if an edge that did not know it yet calls it %s',
  (label) => {
    expect(take({ ...known, label: null }, said(label, one))).toEqual(known)
    expect(take(known, said(label, one))).toBeNull()
  },
)

test.each([
  ['key_changed', two],
  ['key_missing', undefined],
  ['signature_invalid', undefined],
] as const)('%s is an alarm', (label, key) => {
  expect(take(known, said(label, key))).toEqual({ ...known, ...claimed(label, key ?? null) })
})

test('a device whose key is known and that proved none is an alarm, even if its edge did not know the key yet', () => {
  expect(take(known, said('no_key'))).toEqual({ ...known, ...claimed('key_missing', null) })
})

test('the report of an earlier boot that proved no key says nothing of the key that became known since', () => {
  expect(take(known, said('no_key'), { isNewestBoot: false })).toBeNull()
  expect(take({ ...nothing, label: 'key_known' }, said('no_key'), { isNewestBoot: false })).toBeNull()
})

describe('an alarm stays', () => {
  test('until a person decides, whatever the device proves next', () => {
    expect(take(changed, said('key_known', one))).toBeNull()
    expect(take({ ...nothing, ...claim, label: 'signature_invalid' }, said('key_waits', two))).toBeNull()
    expect(take({ ...nothing, ...claim, label: 'signature_invalid' }, said('no_key'))).toBeNull()
  })

  test('and shows the newest key that was proved, which none that lacks one replaces', () => {
    expect(take(changed, said('key_changed', three))).toEqual({ ...known, ...claimed('key_changed', three) })
    expect(take(changed, said('key_missing'))).toBeNull()
    expect(take(changed, said('signature_invalid'))).toBeNull()
    const missing: DeviceKey = { ...known, ...claim, label: 'key_missing' }
    expect(take(missing, said('key_changed', two))).toEqual({ ...known, ...claimed('key_changed', two) })
  })

  test('with the time of its first report and its newest boot', () => {
    expect(take(changed, said('key_changed', two))).toEqual({ ...changed, claimBootId: 'boot 1' })
    expect(take(changed, said('key_changed', two), { isNewestBoot: false })).toBeNull()
  })
})

test('a key waits until it is approved; another one takes its place, and none does not', () => {
  expect(take(nothing, said('key_waits', two))).toEqual({ ...nothing, ...claimed('key_waits', two) })
  expect(take(waiting, said('key_waits', three))).toEqual({ ...nothing, ...claimed('key_waits', three) })
  expect(take(waiting, said('no_key'))).toBeNull()
})

test('a device without a key is labelled as one', () => {
  expect(take(nothing, said('no_key'))).toEqual({ ...nothing, label: 'no_key' })
  expect(take(keyless, said('no_key'))).toBeNull()
  expect(take(keyless, said('key_missing'))).toBeNull()
})

test('a label that needs a key and has none changes nothing', () => {
  for (const label of ['key_known', 'key_waits', 'key_changed'] as const) expect(take(nothing, said(label))).toBeNull()
})

describe('a decision', () => {
  const ends = { claimed: null, claimBootId: null, claimedAt: null, revision: 1 }

  test.each([
    ['approve', waiting, { ...nothing, ...ends, key: two, label: 'key_known' }],
    ['approve', changed, { ...nothing, ...ends, key: two, label: 'key_known' }],
    ['approve', { ...keyless, ...claim, label: 'key_changed', claimed: two }, { ...known, ...ends, key: two }],
    ['keep', changed, { ...known, ...ends }],
    ['keep', { ...keyless, ...claim, label: 'key_changed', claimed: two }, { ...keyless, ...ends }],
    ['keep', { ...nothing, ...claim, label: 'signature_invalid' }, { ...nothing, ...ends }],
    ['forget', known, { ...nothing, ...ends }],
    ['forget', keyless, { ...nothing, ...ends }],
    ['forget', waiting, { ...nothing, ...ends }],
    ['keyless', nothing, { ...keyless, ...ends }],
    ['keyless', changed, { ...keyless, ...ends }],
  ] satisfies [KeyDecision, DeviceKey, DeviceKey][])('%s ends the claim and counts', (decision, before, after) => {
    expect(decideKey(before, decision)).toEqual(after)
  })

  test.each([
    ['approve', known, 'It has proved no key'],
    ['approve', { ...known, ...claim, label: 'key_missing' }, 'It has proved no key'],
    ['keep', known, 'There is no alarm'],
    ['keep', waiting, 'There is no alarm'],
    ['forget', nothing, 'No key of it is known'],
    ['keyless', keyless, 'a device without a key already'],
  ] satisfies [KeyDecision, DeviceKey, string][])('%s is refused where there is nothing to decide', (...row) => {
    const [decision, before, text] = row
    expect(decideKey(before, decision)).toContain(text)
  })
})
