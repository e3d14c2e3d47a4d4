import { expect, test } from 'vitest'
import { ratioOf } from './ratio-interval.ts'

/** Mulberry32: the same numbers in each run. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

test('without packets there is no share, and one boot tells nothing of others', () => {
  expect(ratioOf([])).toBeNull()
  expect(ratioOf([{ of: 0, hits: 0 }])).toBeNull()
  expect(ratioOf([{ of: 100, hits: 5 }])).toEqual({ packets: 100, lost: 5, share: 0.05, low: 0, high: 1 })
})

test('many boots without a lost packet leave little', () => {
  const none = ratioOf(Array.from({ length: 10 }, () => ({ of: 10_000, hits: 0 })))
  expect(none).toMatchObject({ lost: 0, share: 0, low: 0, high: 3 / 100_000 })
})

test('one bad boot among good ones proves nothing of all of them', () => {
  const boots = [{ of: 10_000, hits: 1_000 }, ...Array.from({ length: 7 }, () => ({ of: 10_000, hits: 0 }))]
  expect(ratioOf(boots)?.low).toBe(0)
  expect(ratioOf(boots.map(() => ({ of: 10_000, hits: 120 })))?.low).toBeGreaterThan(0.011)
})

test('the interval holds the true share as often as it says, also where packets of a boot are lost together', () => {
  const random = randomOf(7)
  const share = 0.004
  for (const bursts of [false, true]) {
    for (const boots of [5, 20]) {
      let held = 0
      const runs = 400
      for (let run = 0; run < runs; run += 1) {
        const sample = Array.from({ length: boots }, () => {
          const of = 2_000 + Math.floor(random() * 2_000)
          // A boot in bursts loses up to twice the share, others as much as packets do by themselves.
          const own = bursts ? share * 2 * random() : share
          let hits = 0
          for (let packet = 0; packet < of; packet += 1) if (random() < own) hits += 1
          return { of, hits }
        })
        const ratio = ratioOf(sample)
        if (ratio && ratio.low <= share && share <= ratio.high) held += 1
      }
      expect(held / runs, `${boots} boots, bursts: ${bursts}`).toBeGreaterThan(0.93)
    }
  }
})
