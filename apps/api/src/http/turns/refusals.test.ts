import { expect, test } from 'vitest'
import { Rates } from './rates.ts'
import { Refusals } from './refusals.ts'

test('few refusals are answered at once, more are held by account, and too many end their connections', async () => {
  const released = Promise.withResolvers<void>()
  let waitsCount = 0
  const refusals = new Refusals({
    rates: new Rates({ burstMax: 2, perSecond: 0 }),
    wait: () => {
      waitsCount += 1
      return released.promise
    },
  })
  const left = new AbortController().signal
  expect([await refusals.hold('a', left), await refusals.hold('a', left), waitsCount]).toEqual([true, true, 0])
  const held = Array.from({ length: 2_000 }, () => refusals.hold('a', left))
  expect(waitsCount).toBe(2_000)
  expect(await refusals.hold('a', left)).toBe(false)
  expect(await refusals.hold('b', left)).toBe(true)
  released.resolve()
  expect(new Set(await Promise.all(held))).toEqual(new Set([true]))
})

test('whoever leaves is waited for no longer', async () => {
  const refusals = new Refusals({ rates: new Rates({ burstMax: 0, perSecond: 0 }) })
  const left = new AbortController()
  const held = refusals.hold('a', left.signal)
  left.abort()
  expect(await held).toBe(true)
})

test('a batch is as many refusals as it has procedures', async () => {
  let waitsCount = 0
  const refusals = new Refusals({
    rates: new Rates({ burstMax: 20, perSecond: 0 }),
    wait: async () => {
      waitsCount += 1
    },
  })
  const left = new AbortController().signal
  await refusals.hold('a', left, 20)
  expect(waitsCount).toBe(0)
  await refusals.hold('a', left)
  expect(waitsCount).toBe(1)
})

test('the more refusals an account collects at once, the longer each waits; others wait no longer', async () => {
  const released = Promise.withResolvers<void>()
  const waits: number[] = []
  const refusals = new Refusals({
    rates: new Rates({ burstMax: 0, perSecond: 0 }),
    wait: (ms) => {
      waits.push(ms)
      return released.promise
    },
  })
  const left = new AbortController().signal
  const held = Array.from({ length: 200 }, () => refusals.hold('a', left))
  held.push(refusals.hold('b', left))
  expect([waits[0], waits[39], waits[199], waits[200]]).toEqual([5_000, 10_000, 30_000, 5_000])
  released.resolve()
  await Promise.all(held)
  void refusals.hold('a', left)
  expect(waits.at(-1)).toBe(5_000)
})
