import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type BurnCounts,
  burnLimitOf,
  burnRateOf,
  burnRules,
  burnWindows,
  judgeBurn,
  longBootsMin,
  missedMin,
  type WindowCounts,
} from './burn-rate.ts'

const usual = { permille: 950, days: 30 }
const none = { boots: 0, missed: 0 }

/** Counts of which the longer windows contain the shorter ones. */
const nested = fc.array(fc.tuple(fc.nat(400), fc.nat(400)), { minLength: 4, maxLength: 4 }).map((parts): BurnCounts => {
  let sum = none
  const grown = parts.map(([boots, missed]) => {
    sum = { boots: sum.boots + boots, missed: sum.missed + Math.min(boots, missed) }
    return sum
  })
  const [five = none, thirty = none, hour = none, six = none] = grown
  return { '5m': five, '30m': thirty, '1h': hour, '6h': six }
})
const objectives = fc.record({
  permille: fc.integer({ min: 500, max: 999 }),
  days: fc.integer({ min: 1, max: 90 }),
})

test('limits of 30 days are those of the workbook: 14.4 for an hour, 6 for six', () => {
  const limits = burnRules.map((rule) => burnLimitOf(rule, { permille: 990, days: 30 }))
  expect(limits[0]).toBeCloseTo(14.4)
  expect(limits[1]).toBeCloseTo(6)
})

test('a burn rate of 1 uses the budget up in its time', () => {
  expect(burnRateOf({ boots: 100, missed: 5 }, usual)).toBeCloseTo(1)
  expect(burnRateOf(none, usual)).toBe(0)
})

test('any objective can be missed by enough: if every boot misses it, an alert opens', () => {
  fc.assert(
    fc.property(objectives, fc.integer({ min: longBootsMin, max: 10_000 }), (objective, boots) => {
      const all = { boots, missed: boots }
      const counts = { '5m': all, '30m': all, '1h': all, '6h': all }
      expect(judgeBurn(counts, objective, false)).toMatchObject({ window: '1h' })
    }),
  )
})

test('nothing opens without boots enough, without misses enough, or while the share is met', () => {
  fc.assert(
    fc.property(nested, objectives, (counts, objective) => {
      const burn = judgeBurn(counts, objective, false)
      if (!burn) return
      const { boots, missed } = counts[burn.window]
      expect(boots).toBeGreaterThanOrEqual(longBootsMin)
      expect(missed).toBeGreaterThanOrEqual(missedMin)
      expect(missed / boots).toBeGreaterThanOrEqual(1 - objective.permille / 1000 - 1e-9)
      expect(burn.rate).toBeGreaterThanOrEqual(burn.limit)
    }),
  )
})

test('more misses never close an alert, and what opens one also keeps it open', () => {
  fc.assert(
    fc.property(nested, objectives, fc.constantFrom(...burnWindows), (counts, objective, window) => {
      if (judgeBurn(counts, objective, false)) expect(judgeBurn(counts, objective, true)).not.toBeNull()
      const { boots, missed } = counts[window]
      const worse = { ...counts, [window]: { boots, missed: Math.min(boots, missed + 1) } }
      for (const isOpen of [false, true])
        if (judgeBurn(counts, objective, isOpen)) expect(judgeBurn(worse, objective, isOpen)).not.toBeNull()
    }),
  )
})

test('an alert stays while nothing boots, and closes with boots that are ready in time', () => {
  const bad: WindowCounts = { boots: 40, missed: 40 }
  const counts = { '5m': none, '30m': bad, '1h': bad, '6h': bad }
  expect(judgeBurn(counts, usual, true)).toMatchObject({ window: '1h' })
  const recovered = { boots: 20, missed: 0 }
  expect(judgeBurn({ ...counts, '5m': recovered, '30m': recovered }, usual, true)).toBeNull()
  // The faster rule is over, the slower one is not.
  expect(judgeBurn({ ...counts, '5m': recovered }, usual, true)).toMatchObject({ window: '6h' })
  expect(judgeBurn({ ...counts, '30m': none, '1h': none }, usual, false)).toBeNull()
})
