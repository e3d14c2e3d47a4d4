import { expect, test } from 'vitest'
import { rangeMinutesMax, rangeMinutesMin, rangeOf } from './load-steps.ts'

const now = new Date('2026-11-20T12:03:20Z')
const of = (rangeMinutes: number, until = now) => rangeOf({ until, rangeMinutes, now })

test('a short range is read by the minute, a long one by quarters of an hour, none has more than 501 points', () => {
  expect(of(60)).toMatchObject({ rowMinutes: 1, stepMinutes: 1, from: new Date('2026-11-20T11:03:00Z') })
  expect(of(1440)).toMatchObject({ rowMinutes: 1, stepMinutes: 5, from: new Date('2026-11-19T12:00:00Z') })
  expect(of(2 * 1440)).toMatchObject({ rowMinutes: 1, stepMinutes: 10 })
  expect(of(7 * 1440)).toMatchObject({ rowMinutes: 15, stepMinutes: 30 })
  expect(of(rangeMinutesMax)).toMatchObject({ rowMinutes: 15, stepMinutes: 360 })
  for (let minutes = rangeMinutesMin; minutes <= rangeMinutesMax; minutes += 997) {
    const { from, until, stepMinutes } = of(minutes)
    expect((until.getTime() - from.getTime()) / 60_000 / stepMinutes).toBeLessThanOrEqual(501)
  }
})

test('an hour of last week has no minutes any more', () => {
  expect(of(60, new Date('2026-11-13T12:00:00Z'))).toMatchObject({ rowMinutes: 15, stepMinutes: 15 })
  expect(of(1440, new Date('2026-11-19T13:00:00Z'))).toMatchObject({ rowMinutes: 1 })
  expect(of(1440, new Date('2026-11-19T12:00:00Z'))).toMatchObject({ rowMinutes: 15 })
})
