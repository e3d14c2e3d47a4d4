import { expect, test } from 'vitest'
import { type RateSample, rateOf, withSample } from './send-rate'

const sampled = (...samples: [number, number][]) =>
  samples.reduce<RateSample[]>((known, [atMs, offset]) => withSample(known, { atMs, offset }), [])

test('the rate is that of the last seconds', () => {
  expect(rateOf(sampled([0, 0], [2000, 4000]))).toBe(2000)
  const slowed = sampled([0, 0], [10_000, 1_000_000], [20_000, 1_001_000], [40_000, 1_003_000], [44_000, 1_003_400])
  expect(rateOf(slowed)).toBe(100)
})

test('nothing is said of too short a time, or where nothing arrives', () => {
  expect(rateOf([])).toBe(null)
  expect(rateOf(sampled([0, 0], [1000, 9]))).toBe(null)
  expect(rateOf(sampled([0, 5], [9000, 5]))).toBe(null)
})

test('few samples are kept, however often pieces end', () => {
  const many = sampled(...Array.from({ length: 1000 }, (_, at): [number, number] => [at * 10, at]))
  expect(many).toHaveLength(64)
  expect(sampled([0, 0], [100_000, 1], [200_000, 2])).toEqual([
    { atMs: 100_000, offset: 1 },
    { atMs: 200_000, offset: 2 },
  ])
})
