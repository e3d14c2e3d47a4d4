import { expect, test } from 'vitest'
import { timeZoneFrom } from './time-zone.ts'

test('a cookie names a zone that exists, or it counts as UTC', () => {
  expect(timeZoneFrom('America/Argentina/ComodRivadavia')).toBe('America/Argentina/ComodRivadavia')
  expect(timeZoneFrom(undefined)).toBe('UTC')
  expect(timeZoneFrom('')).toBe('UTC')
  expect(timeZoneFrom('Europe/Atlantis')).toBe('UTC')
  expect(timeZoneFrom('</script><script>')).toBe('UTC')
  expect(timeZoneFrom('x'.repeat(10_000))).toBe('UTC')
})
