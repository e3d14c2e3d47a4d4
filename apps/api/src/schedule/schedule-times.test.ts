import { expect, test } from 'vitest'
import { horizonOf } from './schedule-horizon.ts'
import { localText, plannedInstants, problemOf } from './schedule-times.ts'

const cron = (expression: string) => ({ kind: 'cron' as const, expression })
const hourMs = 3_600_000

/** The nights on which clocks change: a time that is skipped, and one that comes twice. */
const nights = [
  ['Europe/Berlin', '30 2 * * *', '2027-03-28T03:00', '30 2 * * *', '2026-10-25T02:30'],
  ['America/New_York', '30 2 * * *', '2027-03-14T03:00', '30 1 * * *', '2026-11-01T01:30'],
  // Half an hour only.
  ['Australia/Lord_Howe', '15 2 * * *', '2026-10-04T02:30', '45 1 * * *', '2027-04-04T01:45'],
] as const

test.each(nights)('in %s a skipped time runs after the gap, and one that comes twice runs once', (...night) => {
  const [timeZone, skipped, moved, twice, first] = night
  for (const [expression, local, note] of [
    [skipped, moved, 'moved'],
    [twice, first, 'first_of_two'],
  ] as const) {
    const from = new Date(new Date(`${local}Z`).getTime() - 72 * hourMs)
    const planned = plannedInstants({ when: cron(expression), timeZone }, from, 7)
    const days = planned.map(({ at }) => localText(at, timeZone).slice(0, 10))
    expect(new Set(days).size, 'one a day').toBe(7)
    expect(planned.filter((one) => one.note)).toEqual([{ at: expect.any(Date), note }])
    expect(planned.map(({ at }) => localText(at, timeZone))).toContain(local)
  }
})

test('Asia/Kolkata has no such nights', () => {
  const planned = plannedInstants(
    { when: cron('30 2 * * *'), timeZone: 'Asia/Kolkata' },
    new Date('2026-11-20T12:00:00Z'),
    370,
  )
  expect(planned.every(({ note }) => note === null)).toBe(true)
  for (const [index, { at }] of planned.entries())
    if (index > 0) expect(at.getTime() - (planned[index - 1]?.at.getTime() ?? 0)).toBe(24 * hourMs)
})

test('what runs every half hour follows elapsed time through both nights', () => {
  for (const from of ['2026-10-24T20:00:00Z', '2027-03-27T20:00:00Z']) {
    const schedule = { when: cron('*/30 * * * *'), timeZone: 'Europe/Berlin' }
    const planned = plannedInstants(schedule, new Date(from), 20)
    for (const [index, { at }] of planned.entries())
      expect(at.getTime()).toBe(new Date(from).getTime() + ((index + 1) * hourMs) / 2)
  }
})

test('a single run follows the same rule', () => {
  const once = (at: string) =>
    plannedInstants({ when: { kind: 'once', at }, timeZone: 'Europe/Berlin' }, new Date(0), 9)
  expect(once('2027-03-28T02:30')).toEqual([{ at: new Date('2027-03-28T01:00:00Z'), note: 'moved' }])
  expect(once('2026-10-25T02:30')).toEqual([{ at: new Date('2026-10-25T00:30:00Z'), note: 'first_of_two' }])
  expect(once('2026-12-24T06:30:15')).toEqual([{ at: new Date('2026-12-24T05:30:15Z'), note: null }])
})

test('instants of a run in progress and of the last hour stay in the edges’ state', () => {
  const now = new Date('2026-11-20T12:00:00Z')
  const at = (hours: number) => new Date(now.getTime() + hours * hourMs)
  const schedule = { enabled: true, when: cron('0 6 * * *'), timeZone: 'UTC' }
  const { instants } = horizonOf({ ...schedule, known: [at(-30), at(-6), at(-0.5), at(3)], open: [at(-6)] }, now)
  expect(instants.slice(0, 3)).toEqual([at(-6), at(-0.5), new Date('2026-11-21T06:00:00Z')])
  expect(horizonOf({ ...schedule, enabled: false, known: [] }, now)).toEqual({ instants: [], renewAt: null })
})

test('a time that is a year away is known all the same', () => {
  const schedule = { enabled: true, when: cron('0 6 1 1 *'), timeZone: 'UTC', known: [] }
  expect(horizonOf(schedule, new Date('2026-01-02T00:00:00Z')).instants).toEqual([new Date('2027-01-01T06:00:00Z')])
})

test('an expression that would never run is refused', () => {
  expect(problemOf(cron('0 0 31 4 *'), 'UTC')).toContain('would never run')
  expect(problemOf(cron('0 0 29 2 *'), 'UTC')).toBeNull()
})
