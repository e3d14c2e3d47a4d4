import fc from 'fast-check'
import { expect, test } from 'vitest'
import { devicesMin, opens, quietMs, shareLimitOf, stays, usualShareOf } from './failure-share.ts'

const shares = fc.double({ min: 0.0001, max: 0.9999, noNaN: true })

test('a limit is above what is usual, and in reach', () => {
  fc.assert(
    fc.property(shares, (usual) => {
      expect(shareLimitOf(usual)).toBeGreaterThan(usual)
      expect(shareLimitOf(usual)).toBeLessThan(1)
    }),
  )
})

test('what opens an alert also keeps it open, until nothing fails any more', () => {
  const counts = fc.record({ boots: fc.nat(500), devices: fc.nat(500), placeBoots: fc.nat(500), usualShare: shares })
  fc.assert(
    fc.property(counts, (one) => {
      if (!opens(one)) return
      expect(one.devices).toBeGreaterThanOrEqual(devicesMin)
      expect(stays(one, 0)).toBe(true)
      expect(stays(one, quietMs + 1)).toBe(false)
    }),
  )
})

test('few failures among many boots are usual, and those of one device are no news', () => {
  const usualShare = usualShareOf({ failed: 20, boots: 2_000 })
  const counts = { boots: 10, devices: 10, placeBoots: 1_000, usualShare }
  expect(opens(counts)).toBe(false)
  expect(opens({ ...counts, placeBoots: 100 })).toBe(true)
  expect(opens({ ...counts, devices: 1, placeBoots: 10 })).toBe(false)
})

test('an alert closes when enough boots of the site do not fail of the cause', () => {
  const counts = { boots: 0, devices: 0, placeBoots: 0, usualShare: 0.02 }
  expect(stays(counts, 0)).toBe(true)
  expect(stays({ ...counts, placeBoots: 20 }, 0)).toBe(false)
  expect(stays({ ...counts, boots: 10, devices: 10, placeBoots: 20 }, 0)).toBe(true)
})
