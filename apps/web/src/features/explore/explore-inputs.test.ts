import { expect, test } from 'vitest'
import { readFilters } from '../../lib/read-filters.ts'
import { bootFilterShape, bootListInput } from '../boots/boot-filters.ts'
import {
  bootsHref,
  boxOf,
  differencesInput,
  exploreInput,
  exploreShape,
  filtersOfBox,
  textOfBox,
} from './explore-inputs.ts'

const now = new Date('2026-11-18T12:00:30Z')
const span = { since: '2026-11-17T12:00:00.000Z', until: '2026-11-18T12:00:00.000Z' }
const box = {
  sinceMs: Date.parse('2026-11-17T06:00:00Z'),
  untilMs: Date.parse('2026-11-18T00:00:00Z'),
  minUs: 30_000_000,
  maxUs: null,
}

/** What the list of boots asks the API for, when the link is followed. */
function listed(href: string) {
  const query = new URLSearchParams(href.slice('/boots?'.length))
  return bootListInput(readFilters(bootFilterShape, query), now)
}

test('a view is read from its address, and what is wrong in it is left out', () => {
  const query = new URLSearchParams(`by=site&period=24h&box=${textOfBox(box)}&reads=cold&firmware=7&outcome=gone`)
  const filters = readFilters(exploreShape, query)
  expect(exploreInput(filters, now)).toEqual({ by: 'site', since: span.since, reads: 'cold', clientArch: 7 })
  expect(boxOf(filters.box)).toEqual(box)
  for (const text of ['', '1-2-3', '1-2-3-x', '1-2-3-4-5', '-1-2-3-4'])
    expect(readFilters(exploreShape, new URLSearchParams({ box: text }))).toEqual({})
})

test('boxes are asked for within the filters, and their list begins and ends with the page’s', () => {
  expect(differencesInput({ by: 'site', ...span, reads: 'warm' }, { ...box, maxUs: 40_000_000 })).toEqual({
    ...span,
    reads: 'warm',
    boxSince: '2026-11-17T06:00:00.000Z',
    boxUntil: '2026-11-18T00:00:00.000Z',
    boxDurationUsMin: 30_000_000,
    boxDurationUsMax: 40_000_000,
  })
  const filters = { durationMax: '50000000', by: 'edge', period: '24h' } as const
  expect(listed(bootsHref(filters, span, filtersOfBox(box, filters, span)))).toEqual({
    since: span.since,
    until: '2026-11-18T00:00:00.000Z',
    durationUsMin: 30_000_000,
    durationUsMax: 50_000_000,
  })
})

test('a link to boots has the filters of the page, its exact span, and nothing else', () => {
  const answer = { ...span, cells: {} }
  expect(listed(bootsHref({ slower: '10s', period: '7d', sort: '-durationUs' }, answer, { outcome: 'ready' }))).toEqual(
    {
      ...span,
      durationUsMin: 10_000_000,
      outcome: 'ready',
    },
  )
  expect(bootsHref({}, answer)).not.toContain('cells')
})
