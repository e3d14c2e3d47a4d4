import { expect, test } from 'vitest'
import { bootProfileText } from './boot-profile-text'

test('a boot profile is told with its boots, or with where it comes from', () => {
  const profile = {
    hardware: 'any',
    boots: 12,
    readAheadBytes: 25 * 2 ** 20,
    units: 800,
    learnedAt: '2026-11-22T10:00:00.000Z',
  }
  expect(bootProfileText(profile)).toBe('Boot profile: 12 boots learned, 25.0\u00a0MiB read ahead')
  expect(bootProfileText({ ...profile, hardware: 'architecture 7', boots: 0, learnedAt: null })).toBe(
    'Boot profile of architecture 7: from the previous version, 25.0\u00a0MiB read ahead',
  )
})
