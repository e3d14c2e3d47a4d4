import { expect, test } from 'vitest'
import { attainmentSentence, objectiveFormOf, objectiveSentence, readObjectiveForm } from './objective-text'

const none = { objective: null, since: null, boots: 0, missed: 0, budgetLeftPercent: null }
const view = {
  objective: { percent: 95, seconds: 30, days: 1 },
  since: '2026-11-29T07:00:00.000Z',
  boots: 3000,
  missed: 1,
  budgetLeftPercent: 99.3,
}

test('an objective and how it is met are sentences', () => {
  expect(objectiveSentence(none)).toContain('No objective.')
  expect(objectiveSentence(view)).toBe('95 % of boots are ready within 30 s, over 1 day.')
  expect(attainmentSentence(none)).toBe('No boots have been counted yet.')
  expect(attainmentSentence(view)).toMatch(
    /^99\.9 % of 3\D?000 were\. 99\.3 % of the boots that may miss it are left\.$/,
  )
  expect(attainmentSentence({ ...view, missed: 300, budgetLeftPercent: -100 })).toContain('The objective is missed.')
})

test('a form is read as it was written, and a wrong number is named', () => {
  expect(readObjectiveForm(objectiveFormOf(view))).toEqual({ objective: view.objective })
  expect(readObjectiveForm(objectiveFormOf(none))).toEqual({ objective: null })
  const form = { choice: 'on', percent: '99,5', seconds: '30', days: '30' }
  expect(readObjectiveForm(form)).toEqual({ objective: { percent: 99.5, seconds: 30, days: 30 } })
  for (const percent of ['', '100', '49.9', '99.99', 'x'])
    expect(readObjectiveForm({ ...form, percent })).toEqual({ problem: 'Enter a share of 50 to 99.9 %.' })
  for (const seconds of ['0', '1801', '2.5'])
    expect(readObjectiveForm({ ...form, seconds })).toEqual({ problem: 'Enter a time of 1 to 1800 s.' })
  for (const days of ['0', '91'])
    expect(readObjectiveForm({ ...form, days })).toEqual({ problem: 'Enter 1 to 90 days.' })
})
