import { expect, test } from 'vitest'
import { emptyDraft, fieldsOf, rhythmOf, whenOf, withTarget } from './schedule-draft'

const draft = emptyDraft({ siteId: null, timeZone: 'Europe/Berlin' }, '2026-11-22')
const cron = (expression: string) => ({ kind: 'cron' as const, expression })

test.each([
  ['30 6 * * 1-5', { rhythm: 'weekly', time: '06:30', days: [1, 2, 3, 4, 5] }],
  ['5 0 * * *', { rhythm: 'daily', time: '00:05' }],
  ['0 22 * * 0,3', { rhythm: 'weekly', time: '22:00', days: [3, 0] }],
  ['*/5 * * * *', { rhythm: 'cron', expression: '*/5 * * * *' }],
  ['0 6 1 * *', { rhythm: 'cron' }],
  ['0 6 * * 5-1', { rhythm: 'cron' }],
  ['61 6 * * *', { rhythm: 'cron' }],
])('%s is shown as people choose it, and comes back as the same expression', (expression, shown) => {
  const parts = rhythmOf(cron(expression))
  expect(parts).toMatchObject(shown)
  expect(whenOf({ ...draft, ...parts })).toEqual(cron(expression))
})

test('a single run keeps its date and time', () => {
  const once = { kind: 'once' as const, at: '2026-12-24T06:30:15' }
  expect(whenOf({ ...draft, ...rhythmOf(once) })).toEqual(once)
})

test.each([
  [{}, /Enter a name/],
  [{ name: 'x', days: [] }, /day of the week/],
  [{ name: 'x', time: '' }, /time of day/],
  [{ name: 'x', ratePerMinute: '0' }, /1 to 6000/],
  [{ name: 'x', ratePerMinute: 'many' }, /1 to 6000/],
  [{ name: 'x' }, /device, collection or tag/],
])('a form with %j says what is missing', (change, sentence) => {
  expect(fieldsOf({ ...draft, ...change })).toEqual({ problem: expect.stringMatching(sentence) })
})

test('a target is named once', () => {
  const tag = { kind: 'tag' as const, tag: 'lab' }
  const named = withTarget(withTarget({ ...draft, name: 'x' }, tag), tag)
  expect(fieldsOf(named)).toMatchObject({ fields: { targets: [tag], ratePerMinute: 60 } })
})
