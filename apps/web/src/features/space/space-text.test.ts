import { expect, test } from 'vitest'
import { forecastText, linePoints, lineText, type Space, trendText, warningText } from './space-text'

const now = Date.parse('2026-11-20T12:00:00Z')
const dayMs = 86_400_000
const gib = 1024 ** 3
const space = (changes: Partial<Space>): Space =>
  Object.assign(
    {
      freeBytes: 50 * gib,
      totalBytes: 100 * gib,
      usableBytes: 45 * gib,
      pendingBytes: 0,
      bytesPerDay: null,
      fullAt: null,
      warning: null,
      samples: [],
    },
    changes,
  )
const inDays = (days: number) => new Date(now + days * dayMs).toISOString()

test('a forecast says how fast it goes, and when it ends', () => {
  expect(trendText(space({}))).toBe('known after two days of reports')
  expect(trendText(space({ bytesPerDay: 0 }))).toBe('unchanged over the last 30 days')
  expect(trendText(space({ bytesPerDay: -gib }))).toMatch(/^1\.00\sGiB less free each day$/)
  expect(trendText(space({ bytesPerDay: 2 * gib }))).toMatch(/^2\.00\sGiB more free each day$/)
  expect(forecastText(space({}), now)).toBe('not known yet')
  expect(forecastText(space({ bytesPerDay: 5 }), now)).toBe('not within ten years')
  const ends = [0.5, 1.5, 6.2].map((days) => forecastText(space({ bytesPerDay: -5, fullAt: inDays(days) }), now))
  expect(ends).toEqual(['within a day', 'in 1 day', 'in 6 days'])
})

test('a warning says what to do', () => {
  expect(warningText(space({}))).toBe(null)
  expect(warningText(space({ warning: 'filling' }))).toContain('set a retention')
  expect(warningText(space({ warning: 'full' }))).toContain('larger disk')
  expect(warningText(space({ warning: 'next_version' }))).toContain('does not fit')
})

test('the line goes from the first sample to the last', () => {
  const sample = (days: number, freeBytes: number) => ({ at: inDays(days), freeBytes, totalBytes: 100 })
  const box = { width: 200, height: 40 }
  expect(linePoints(space({ samples: [sample(0, 100), sample(1, 50), sample(4, 0)] }), box)).toBe(
    '0.0,0.0 50.0,20.0 200.0,40.0',
  )
  expect(linePoints(space({ samples: [sample(0, 100)] }), box)).toBe('')
  expect(lineText(space({ samples: [sample(0, 50)] }))).toMatch(/^The last 60 days, from 0 to 100\sB\.$/)
})
