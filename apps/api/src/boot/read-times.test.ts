import { expect, test } from 'vitest'
import { keptReadTimes, readTimesViewOf } from './read-times.ts'

/** All in one bucket, from 2^(bucket-1) to 2^bucket µs. */
const inBucket = (bucket: number, count: number, sumUs: number, maxUs = 2 ** bucket - 1) => ({
  firstBucket: bucket,
  counts: [count],
  sumUs,
  maxUs,
})

test('median and p95 are estimated within their powers of two, and are never longer than the longest', () => {
  const { turnaround, storage } = readTimesViewOf({
    turnaround: { firstBucket: 8, counts: [90, 0, 10], sumUs: 20_000, maxUs: 600 },
    warm: inBucket(10, 4, 2_100, 530),
  })
  expect(turnaround).toEqual({ count: 100, medianUs: 199, p95Us: 600, maxUs: 600, sumUs: 20_000 })
  expect(storage).toMatchObject({ medianUs: 530, p95Us: 530, maxUs: 530 })
})

test('warm and cold reads are the storage’s time, and the rest of the device’s time is the wire’s', () => {
  const view = readTimesViewOf({
    warm: inBucket(4, 90, 900),
    cold: inBucket(13, 10, 60_000),
    send: inBucket(6, 100, 4_000),
    fetch: inBucket(11, 100, 150_000),
  })
  expect(view).toMatchObject({ coldReads: 10, storage: { count: 100, sumUs: 60_900 } })
  expect(view).toMatchObject({ warm: { count: 90, sumUs: 900 }, cold: { count: 10, sumUs: 60_000 } })
  expect(view.fetch?.sumUs).toBe(150_000)
  // The edge’s p95 is longer than the device’s: a difference of both would be no time at all.
  expect(view.wire).toEqual({ count: 100, medianUs: null, p95Us: null, maxUs: null, sumUs: 150_000 - 60_900 - 4_000 })
})

test('the network’s part is that of each read where the edge reports it, and its p95 is no shorter than its median', () => {
  const { wire, phases } = readTimesViewOf({
    phases: [
      { name: 'initramfs', fetch: inBucket(11, 3, 4_500), wire: inBucket(8, 3, 600) },
      { name: 'system', fetch: inBucket(12, 97, 290_000), wire: inBucket(6, 97, 4_000) },
    ],
  })
  expect(wire).toMatchObject({ count: 100, sumUs: 4_600, maxUs: 255 })
  expect(wire?.p95Us).toBeGreaterThanOrEqual(wire?.medianUs ?? Number.POSITIVE_INFINITY)
  expect(phases.map((phase) => phase.wire?.count)).toEqual([3, 97])
})

test('reads that were sent again are later by as much as the edge measured, in all phases together', () => {
  const initramfs = { name: 'initramfs' as const, late: inBucket(10, 1, 900) }
  const view = readTimesViewOf({ phases: [initramfs, { name: 'system', late: inBucket(12, 2, 5_000, 2_600) }] })
  expect(view.late).toMatchObject({ count: 3, maxUs: 2_600, sumUs: 5_900 })
  expect(view.phases.map(({ late }) => late?.count)).toEqual([1, 2])
})

test('a device whose answers were counted by halves has the edge’s time by its own number of reads', () => {
  const { wire } = readTimesViewOf({
    warm: inBucket(4, 200, 2_000),
    send: inBucket(4, 200, 2_000),
    fetch: inBucket(7, 100, 10_000),
  })
  expect(wire?.sumUs).toBe(10_000 - 2_000)
})

test('what was not measured is not there', () => {
  expect(readTimesViewOf({})).toEqual({
    reads: 0,
    bytes: null,
    phases: [],
    storage: null,
    warm: null,
    cold: null,
    coldReads: 0,
    send: null,
    wire: null,
    fetch: null,
    late: null,
    turnaround: null,
    wait: null,
  })
  expect(readTimesViewOf({ fetch: inBucket(7, 1, 100) }).wire).toBeNull()
})

test('each phase has separate times, one without reads has none, and the whole boot has the sum of the kept ones', () => {
  const initramfs = {
    name: 'initramfs' as const,
    bytes: 8_192,
    warm: inBucket(4, 2, 20, 12),
    send: inBucket(6, 2, 80),
    fetch: inBucket(9, 2, 600, 400),
    turnaround: inBucket(3, 1, 7),
  }
  const system = {
    name: 'system' as const,
    bytes: 1_048_576,
    cold: inBucket(13, 10, 60_000),
    send: inBucket(6, 10, 400),
    fetch: inBucket(14, 10, 90_000),
  }
  const whole = {
    bytes: 1_056_768,
    warm: inBucket(4, 2, 20, 12),
    cold: inBucket(13, 10, 60_000),
    send: inBucket(6, 12, 480),
    fetch: { firstBucket: 9, counts: [2, 0, 0, 0, 0, 10], sumUs: 90_600, maxUs: 16_383 },
    turnaround: inBucket(3, 1, 7),
  }
  const kept = keptReadTimes({ ...whole, phases: [initramfs, system] })
  expect(kept).toEqual({ phases: [initramfs, system] })
  const { phases, ...sum } = readTimesViewOf(kept)
  const { phases: none, ...wholeOnly } = readTimesViewOf(keptReadTimes(whole))
  expect(none).toEqual([])
  expect(sum).toEqual(wholeOnly)
  expect(sum).toMatchObject({ reads: 12, bytes: 1_056_768, coldReads: 10 })
  expect(phases).toMatchObject([
    {
      name: 'initramfs',
      reads: 2,
      bytes: 8_192,
      storage: { sumUs: 20 },
      wire: { sumUs: 500 },
      turnaround: { count: 1 },
    },
    { name: 'system', reads: 10, coldReads: 10, wire: { sumUs: 90_000 - 60_400 }, turnaround: null },
  ])
  const idle = readTimesViewOf({ phases: [initramfs, { name: 'system', bytes: 0 }] })
  expect(idle.phases[1]).toMatchObject({ reads: 0, bytes: 0, storage: null, send: null, wire: null })
})

test('a phase of which the edge knows no bytes leaves the sum of them open', () => {
  expect(readTimesViewOf({ phases: [{ name: 'initramfs', bytes: 5 }, { name: 'system' }] }).bytes).toBeNull()
})
