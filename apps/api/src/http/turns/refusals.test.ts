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
