import { expect, test } from 'vitest'
import { Rates } from './rates.ts'

test('a person has a burst, then a rate; the others have theirs', () => {
  let now = 0
  const rates = new Rates({ burstMax: 400, perSecond: 50, nowMs: () => now })
  const takeAll = (name: string, count: number) =>
    Array.from({ length: count }, () => rates.take(name)).filter(Boolean).length
  expect(takeAll('a', 500)).toBe(400)
  expect(takeAll('b', 10)).toBe(10)
  now += 1_000
  expect(takeAll('a', 100)).toBe(50)
  now += 60_000
  expect(takeAll('a', 500)).toBe(400)
})

test('what is taken beyond the limit is missing afterwards', () => {
  let now = 0
  const rates = new Rates({ burstMax: 10, perSecond: 2, nowMs: () => now })
  expect([rates.take('a', 20), rates.take('a')]).toEqual([true, false])
  now += 5_000
  expect(rates.take('a')).toBe(false)
  now += 500
  expect(rates.take('a')).toBe(true)
})
