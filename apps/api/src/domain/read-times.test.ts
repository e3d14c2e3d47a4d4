import { expect, test } from 'vitest'
import { readTimesViewOf } from './read-times.ts'

/** All in one bucket, from 2^(bucket-1) to 2^bucket µs. */
const inBucket = (bucket: number, count: number, sumUs: number, maxUs = 2 ** bucket - 1) => ({
  ...{ firstBucket: bucket, counts: [count], sumUs, maxUs },
})

test('median and p95 are estimated within their powers of two, and are never longer than the longest', () => {
  const { turnaround, storage } = readTimesViewOf({
    turnaround: { firstBucket: 8, counts: [90, 0, 10], sumUs: 20_000, maxUs: 600 },
    warm: inBucket(10, 4, 2_100, 530),
  })
  expect(turnaround).toEqual({ count: 100, medianUs: 199, p95Us: 600, maxUs: 600, sumUs: 20_000 })
  expect(storage).toMatchObject({ medianUs: 530, p95Us: 530, maxUs: 530 })
})

test('warm and cold reads are the storage, and the wire is what is left of the device’s time', () => {
  const view = readTimesViewOf({
    warm: inBucket(4, 90, 900),
    cold: inBucket(13, 10, 60_000),
    send: inBucket(6, 100, 4_000),
    fetch: inBucket(11, 100, 150_000),
  })
  expect(view).toMatchObject({ coldReads: 10, storage: { count: 100, sumUs: 60_900 } })
  expect(view.wire).toMatchObject({ count: 100, sumUs: 150_000 - 60_900 - 4_000 })
  // The edge’s p95 is longer than the device’s: the estimate is not below nothing.
  expect(view.wire?.p95Us).toBe(0)
  expect(view.wire?.medianUs).toBeGreaterThan(1_024)
})

test('a device whose answers were counted by halves has the edge’s time by its own number of reads', () => {
  const { wire } = readTimesViewOf({
    ...{ warm: inBucket(4, 200, 2_000), send: inBucket(4, 200, 2_000) },
    fetch: inBucket(7, 100, 10_000),
  })
  expect(wire?.sumUs).toBe(10_000 - 2_000)
})

test('what was not measured is not there', () => {
  expect(readTimesViewOf({})).toEqual({
    ...{ storage: null, coldReads: 0, send: null, wire: null, turnaround: null, wait: null },
  })
  expect(readTimesViewOf({ fetch: inBucket(7, 1, 100) }).wire).toBeNull()
})
