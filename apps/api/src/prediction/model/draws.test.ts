import { expect, test } from 'vitest'
import { Draws } from './draws.ts'
import { mean } from './quantiles.ts'

const drawn = <T>(seed: number, draw: (draws: Draws) => T, count = 4_000): T[] => {
  const draws = new Draws(seed)
  return Array.from({ length: count }, () => draw(draws))
}

test('the same seed draws the same, another seed something else', () => {
  const some = (seed: number) => drawn(seed, (draws) => draws.normal(), 10)
  expect(some(3)).toEqual(some(3))
  expect(some(3)).not.toEqual(some(4))
})

test('each value is drawn about as often', () => {
  const counts = Map.groupBy(
    drawn(1, (draws) => draws.oneOf([0, 1, 2, 3])),
    (value) => value,
  )
  for (const value of [0, 1, 2, 3]) expect(Math.abs((counts.get(value)?.length ?? 0) - 1_000)).toBeLessThan(120)
})

test('normal numbers have mean 0 and standard deviation 1, and one in twenty is beyond two of them', () => {
  const numbers = drawn(2, (draws) => draws.normal())
  expect(Math.abs(mean(numbers))).toBeLessThan(0.06)
  expect(Math.abs(mean(numbers.map((one) => one ** 2)) - 1)).toBeLessThan(0.1)
  expect(numbers.filter((one) => Math.abs(one) > 2).length / numbers.length).toBeLessThan(0.07)
})

test('a bootstrap sample is as large, and leaves out about a third', () => {
  const sample = new Draws(5).resample(Array.from({ length: 1_000 }, (_, index) => index))
  expect(sample).toHaveLength(1_000)
  expect(Math.abs(new Set(sample).size - 632)).toBeLessThan(50)
})
