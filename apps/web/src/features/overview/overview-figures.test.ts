import { expect, test } from 'vitest'
import { readFilters } from '../../lib/read-filters.ts'
import { bootFilterShape, bootListInput } from '../boots/boot-filters.ts'
import { figuresOf } from './overview-figures.ts'

const farmId = '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3'
const siteId = '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b4'
const since = '2026-11-19T13:00:00.000Z'
const counts = { edgesOnline: 2, edges: 3, devices: 12, bootsBooting: 4 } as Parameters<typeof figuresOf>[0]['counts']
const times = { readyCount: 90, failedCount: 10, noResponseCount: 20, generatedCount: 0, p50Us: 1e6, p95Us: 2e6 }
const last24Hours = { since, ...times }

/** What the list of boots asks for at the address of each tile. */
function askedBy(scope: Parameters<typeof figuresOf>[1]) {
  return figuresOf({ counts, last24Hours }, scope)
    .filter(({ href }) => href.startsWith('/boots?'))
    .map(({ label, href }) => {
      const query = new URLSearchParams(href.slice('/boots?'.length))
      return [label.replace(/\u00a0/g, ' '), bootListInput(readFilters(bootFilterShape, query), new Date())]
    })
}

// apps/api/src/overview/get-overview.test.ts proves that these lists have as many boots as the tiles say.
test.each([{}, { farmId }, { farmId, siteId }])('each tile leads to what it counts, in the scope %j', (scope) => {
  expect(askedBy(scope)).toEqual([
    ['Booting now', { ...scope, outcome: 'booting' }],
    ['Ready (24 h)', { ...scope, outcome: 'ready', since }],
    ['Failed or timed out (24 h)', { ...scope, outcome: 'unsuccessful', since }],
    ['No response to wake (24 h)', { ...scope, outcome: 'no_response', since }],
    ['Boot time (median, 24 h)', { ...scope, outcome: 'ready', since, sort: 'durationUs' }],
    ['Boot time (p95, 24 h)', { ...scope, outcome: 'ready', since, sort: '-durationUs' }],
  ])
})

test('devices that did not answer a wake-up do not lower the share of ready boots', () => {
  const figures = figuresOf({ counts, last24Hours }, {})
  expect(figures.find(({ label }) => label.startsWith('Ready'))).toMatchObject({ value: '90', note: '90.0 %' })
  expect(figures.find(({ label }) => label.startsWith('No response'))).toMatchObject({ value: '20' })
})
