import { expect, test } from 'vitest'
import { readFilters } from '../../lib/read-filters.ts'
import { compareHref, compareInput, compareShape, parameterOf, setsOf } from './compare-inputs.ts'

const now = new Date('2026-11-18T12:00:30Z')
const id = '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3'
const other = '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b4'

test('the address of two sets gives both back, and what is wrong in it is left out', () => {
  const sets = { set: { version: id, period: '30d' }, base: { version: other, outcome: 'ready' } } as const
  const query = new URLSearchParams(compareHref(sets).slice('/explore/compare?'.length))
  expect(setsOf(readFilters(compareShape, query))).toEqual(sets)
  query.set('base-version', 'the one before')
  query.set('base-sort', 'durationUs')
  query.set('outcome', 'gone')
  expect(setsOf(readFilters(compareShape, query))).toEqual({ set: sets.set, base: { outcome: 'ready' } })
  expect([parameterOf('set', 'site'), parameterOf('base', 'site')]).toEqual(['site', 'base-site'])
})

test('the API is asked for both sets, each with its filters', () => {
  const sets = {
    set: { version: id, durationMin: '5' },
    base: { version: other, period: '24h', reads: 'warm' },
  } as const
  expect(compareInput(sets, now)).toEqual({
    versionId: id,
    durationUsMin: 5,
    baseVersionId: other,
    baseSince: '2026-11-17T12:00:00.000Z',
    baseReads: 'warm',
  })
  expect(compareInput({ set: {}, base: {} }, now)).toEqual({})
})
