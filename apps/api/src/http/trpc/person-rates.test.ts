import { expect, test } from 'vitest'
import { PersonRates } from './person-rates.ts'

test('a person has a burst, then a rate; the others have theirs', () => {
  let now = 0
  const rates = new PersonRates({ nowMs: () => now })
  const takeAll = (userId: string, count: number) =>
    Array.from({ length: count }, () => rates.take(userId)).filter(Boolean).length
  expect(takeAll('a', 1_500)).toBe(1_000)
  expect(takeAll('b', 10)).toBe(10)
  now += 1_000
  expect(takeAll('a', 100)).toBe(50)
  now += 60_000
  expect(takeAll('a', 1_500)).toBe(1_000)
})
