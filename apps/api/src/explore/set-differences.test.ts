import { expect, test } from 'vitest'
import { randomNumbers } from '../../test/seeded/random-numbers.ts'
import { medianDifference, medianMin, medianOf, shareDifference } from './set-differences.ts'

const alone = { comparedCount: 1 }

/** Durations with a long tail, as boots have; `times` longer than usual. */
function durations(below: (limit: number) => number, { count, times }: { count: number; times: number }): number[] {
  const uniform = () => (1 + below(1_000_000)) / 1_000_001
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())
  return Array.from({ length: count }, () => 20_000 * times * Math.exp(0.5 * normal())).sort((a, b) => a - b)
}

test('a median has as many values below as above', () => {
  expect([medianOf([]), medianOf([7]), medianOf([1, 3]), medianOf([1, 2, 9])]).toEqual([null, 7, 2, 2])
})

test.each([12, 60, 400])(
  'the interval holds the true difference of medians about 19 times of 20 (%i boots)',
  (count) => {
    const below = randomNumbers(count)
    const turns = 400
    let held = 0
    for (let turn = 0; turn < turns; turn += 1) {
      const first = durations(below, { count, times: 1 })
      const found = medianDifference(first, durations(below, { count: count * 2, times: 1.3 }), alone)
      if (found && found.low <= 6_000 && found.high >= 6_000) held += 1
    }
    expect(held / turns).toBeGreaterThan(0.92)
    // An interval that always holds it would be too wide to say anything.
    expect(held / turns).toBeLessThan(0.995)
  },
)

test('equal sets do not differ, exchanged ones differ the other way, and few boots say nothing', () => {
  const below = randomNumbers(5)
  const [first, second] = [durations(below, { count: 50, times: 1 }), durations(below, { count: 80, times: 3 })]
  expect(medianDifference(first, first, alone)).toMatchObject({ difference: 0, isClear: false })
  const found = medianDifference(first, second, alone)
  expect(found?.isClear).toBe(true)
  const exchanged = medianDifference(second, first, alone)
  expect(exchanged?.difference).toBeCloseTo(-(found?.difference ?? 0))
  expect(exchanged?.low).toBeCloseTo(-(found?.high ?? 0))
  expect(medianDifference(first.slice(0, medianMin - 1), second, alone)).toBeNull()
  const wide = medianDifference(first, second, { comparedCount: 10 })
  expect((wide?.high ?? 0) - (wide?.low ?? 0)).toBeGreaterThan((found?.high ?? 0) - (found?.low ?? 0))
})

test('shares differ as Newcombe’s example does', () => {
  // Table II of the paper, method 10: 56/70 less 48/80 is 0.2, from 0.0524 to 0.3339.
  const found = shareDifference({ count: 48, of: 80 }, { count: 56, of: 70 }, alone)
  expect(found?.difference).toBeCloseTo(0.2, 4)
  expect(found?.low).toBeCloseTo(0.0524, 4)
  expect(found?.high).toBeCloseTo(0.3339, 4)
  expect(found?.isClear).toBe(true)
  expect(shareDifference({ count: 0, of: 0 }, { count: 1, of: 2 }, alone)).toBeNull()
})

test('an interval of shares lies within -1 and 1, and holds the difference', () => {
  const below = randomNumbers(8)
  for (let turn = 0; turn < 500; turn += 1) {
    const part = () => {
      const of = 1 + below(300)
      return { count: below(of + 1), of }
    }
    const found = shareDifference(part(), part(), { comparedCount: 1 + below(20) })
    if (!found) throw new Error('no set is empty')
    expect(found.low).toBeGreaterThanOrEqual(-1 - 1e-9)
    expect(found.high).toBeLessThanOrEqual(1 + 1e-9)
    expect(found.low).toBeLessThanOrEqual(found.difference + 1e-9)
    expect(found.high).toBeGreaterThanOrEqual(found.difference - 1e-9)
  }
})
