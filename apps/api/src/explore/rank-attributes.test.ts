import { expect, test } from 'vitest'
import { randomNumbers } from '../../test/seeded/random-numbers.ts'
import { rankValues } from './rank-attributes.ts'

const count = (value: string, inside: number, outside: number) => ({ attribute: 'site', value, inside, outside })

test('a value that most slow boots have, and few others, comes first and is clear', () => {
  const { values, comparedCount } = rankValues([count('a', 90, 100), count('b', 10, 880), count('c', 3, 0)], {
    inside: 103,
    outside: 980,
  })
  expect(comparedCount).toBe(2)
  expect(values.map(({ value }) => value)).toEqual(['a'])
  expect(values[0]).toMatchObject({ isClear: true, inside: 90, outside: 100 })
  // By hand: 90.5 * 880.5 / (13.5 * 100.5).
  expect(values[0]?.oddsRatio).toBeCloseTo(58.7, 1)
})

test('the same counts rank the same in any order, within their intervals, and none is clear below 1', () => {
  const below = randomNumbers(20261129)
  for (let turn = 0; turn < 300; turn += 1) {
    const sizes = { inside: 1 + below(500), outside: 1 + below(5000) }
    const counts = Array.from({ length: 1 + below(40) }, (_, index) =>
      count(String(index), below(sizes.inside + 1), below(sizes.outside + 1)),
    )
    const { values } = rankValues(counts, sizes)
    expect(rankValues(counts.toReversed(), sizes).values.map(({ low }) => low)).toEqual(values.map(({ low }) => low))
    for (const { inside, outside, oddsRatio, low, high, isClear } of values) {
      expect(low).toBeLessThanOrEqual(oddsRatio)
      expect(high).toBeGreaterThanOrEqual(oddsRatio)
      expect(Number.isFinite(high)).toBe(true)
      expect(isClear).toBe(low > 1)
      if (isClear) expect(inside / sizes.inside).toBeGreaterThan(outside / sizes.outside)
    }
    expect(values.map(({ low }) => low)).toEqual(values.map(({ low }) => low).toSorted((a, b) => b - a))
  }
})

test('equal sets have a clear value in about one ranking of twenty, and not in more', () => {
  const below = randomNumbers(7)
  const valuesOfAttribute = 25
  let rankings = 0
  for (let turn = 0; turn < 400; turn += 1) {
    const draw = (size: number) => {
      const counts = new Array<number>(valuesOfAttribute).fill(0)
      for (let one = 0; one < size; one += 1) {
        const value = below(valuesOfAttribute)
        counts[value] = (counts[value] ?? 0) + 1
      }
      return counts
    }
    const [inside, outside] = [draw(200), draw(2000)]
    const counts = inside.map((here, index) => count(String(index), here, outside[index] ?? 0))
    if (rankValues(counts, { inside: 200, outside: 2000 }).values.some(({ isClear }) => isClear)) rankings += 1
  }
  expect(rankings).toBeLessThan(400 * 0.07)
})
