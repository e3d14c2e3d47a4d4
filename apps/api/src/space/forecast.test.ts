import { expect, test } from 'vitest'
import { daysUntilFull, reserveOf, type SpaceSample, trendOf, usableBytes, warningOf } from './forecast.ts'

const now = new Date('2026-11-20T12:00:00Z')
const gib = 1024 ** 3
const dayMs = 86_400_000

/** Every six hours until now. */
function samplesOf(count: number, freeAt: (daysAgo: number) => number): SpaceSample[] {
  return Array.from({ length: count }, (_, index) => {
    const daysAgo = (count - 1 - index) / 4
    return { at: new Date(now.getTime() - daysAgo * dayMs), freeBytes: freeAt(daysAgo) }
  })
}

test('a store that loses a GiB a day is full when its reserve is reached', () => {
  const bytesPerDay = trendOf(
    samplesOf(60, (daysAgo) => (50 + daysAgo) * gib),
    now,
  )
  expect(bytesPerDay).toBe(-gib)
  // 5 % of 400 GiB stay free.
  expect(daysUntilFull({ freeBytes: 50 * gib, totalBytes: 400 * gib }, bytesPerDay)).toBe(30)
})

test('one large import, or a cleaning, does not turn the line', () => {
  const steady = (daysAgo: number) => (100 + daysAgo) * gib
  const withImport = (daysAgo: number) => steady(daysAgo) - (daysAgo < 0.6 ? 60 * gib : 0)
  expect(trendOf(samplesOf(60, withImport), now)).toBeGreaterThan(-2 * gib)
  const withCleaning = (daysAgo: number) => steady(daysAgo) + (daysAgo < 0.6 ? 60 * gib : 0)
  expect(trendOf(samplesOf(60, withCleaning), now)).toBeLessThan(-0.5 * gib)
})

test('too few samples, too short a time and a time long ago say nothing', () => {
  const falling = (daysAgo: number) => (50 + daysAgo) * gib
  expect(trendOf(samplesOf(7, falling), now)).toBe(null)
  expect(trendOf(samplesOf(8, falling), now)).toBe(null)
  expect(trendOf(samplesOf(9, falling), now)).toBe(-gib)
  expect(trendOf(samplesOf(60, falling), new Date(now.getTime() + 40 * dayMs))).toBe(null)
  const space = { freeBytes: 50 * gib, totalBytes: 400 * gib }
  expect(daysUntilFull(space, null)).toBe(null)
  expect(daysUntilFull(space, 0)).toBe(null)
  expect(daysUntilFull(space, gib)).toBe(null)
  // Ten years and more.
  expect(daysUntilFull(space, -1024)).toBe(null)
})

test('the reserve is that of the edge', () => {
  expect(reserveOf(4 * gib)).toBe(gib)
  expect(reserveOf(20 * gib)).toBe(2 * gib)
  expect(reserveOf(400 * gib)).toBe(20 * gib)
  expect(usableBytes({ freeBytes: gib, totalBytes: 400 * gib })).toBe(0)
  expect(daysUntilFull({ freeBytes: gib, totalBytes: 400 * gib }, null)).toBe(0)
})

test('a warning comes a week ahead, ends only when it is clearly over, and knows the next version', () => {
  const space = { freeBytes: 50 * gib, totalBytes: 400 * gib }
  const of = (days: number | null, pendingBytes = 0, isTold = false) => warningOf(space, { days, pendingBytes, isTold })
  expect([of(7), of(6.9), of(9, 0, true), of(10, 0, true), of(null)]).toEqual([null, 'filling', 'filling', null, null])
  expect([of(null, 30 * gib), of(null, 30 * gib + 1)]).toEqual([null, 'next_version'])
  expect(warningOf({ freeBytes: gib, totalBytes: 400 * gib }, { days: 0, pendingBytes: 0, isTold: false })).toBe('full')
})
