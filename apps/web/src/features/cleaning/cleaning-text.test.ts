import { expect, test } from 'vitest'
import { type Cleaning, cleaningSentence, formOf, lastText, readForm } from './cleaning-text'

const night = { from: '01:00', to: '05:00' }
const cleaning = (changes: Partial<Cleaning>): Cleaning =>
  Object.assign({ revision: 1, mode: 'daily' as const, window: night, isDue: false, last: null }, changes)

test('the schedule of a store is a sentence', () => {
  expect(cleaningSentence(cleaning({}))).toBe('Every day, between 01:00 and 05:00, by the clocks of the site.')
  expect(cleaningSentence(cleaning({ mode: 'after_deletions', window: null, isDue: true }))).toBe(
    'After something was deleted, at any time. It is due now.',
  )
  expect(cleaningSentence(cleaning({ mode: 'off' }))).toBe('Only when somebody starts it.')
})

test('the last result is in the words of the edge', () => {
  const last = { jobId: 'j', state: 'done' as const, endedAt: null, untrusted: { message: 'freed 2.6 GiB' } }
  expect(lastText(last)).toBe('done: freed 2.6 GiB')
  expect(lastText(Object.assign({}, last, { state: 'running', untrusted: { message: null } }))).toBe('running')
})

test('a form is read as it was written, and half a window is refused', () => {
  expect(readForm(formOf(cleaning({})))).toEqual({ mode: 'daily', window: night })
  expect(readForm(formOf(cleaning({ window: null })))).toEqual({ mode: 'daily', window: null })
  expect(readForm({ mode: 'off', from: '01:00', to: '' })).toEqual({
    problem: 'Enter both times, or neither for the whole day.',
  })
  expect(readForm({ mode: 'off', from: '01:00', to: '01:00' })).toEqual({
    problem: 'Cleaning cannot start from and until the same time. Leave both empty for the whole day.',
  })
})
