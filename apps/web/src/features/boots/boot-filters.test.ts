import { expect, test } from 'vitest'
import { readFilters } from '../../lib/read-filters.ts'
import { bootExportHref, bootFilterShape, bootListInput, processorOptions } from './boot-filters.ts'

const now = new Date('2026-11-18T12:00:30Z')
const id = '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3'

test('filters become what the API is asked for', () => {
  expect(bootListInput({}, now)).toEqual({})
  expect(bootListInput({ outcome: 'failed', period: '24h', origin: 'simulated' }, now)).toEqual({
    outcome: 'failed',
    since: '2026-11-17T12:00:00.000Z',
    origin: 'simulated',
  })
  expect(bootListInput({ sort: '-startedAt' }, now)).toEqual({})
  expect(bootListInput({ sort: '-durationUs', slower: '1m', cause: 'tftp_timeout', version: id }, now)).toEqual({
    sort: '-durationUs',
    durationUsMin: 60_000_000,
    failedCause: 'tftp_timeout',
    versionId: id,
  })
})

test('hardware, storage and hour become what the API is asked for', () => {
  const filters = { hour: '08', processors: '4', memory: '16', storage: 'nvme', model: 'Maker', segment: '10.0.0.0/24' }
  expect(bootListInput(readFilters(bootFilterShape, new URLSearchParams(filters)), now)).toEqual({
    hour: 8,
    processors: 4,
    memoryGib: 16,
    storage: 'nvme',
    hardwareModel: 'Maker',
    segment: '10.0.0.0/24',
  })
  expect(processorOptions('5').map(({ value }) => value)).toEqual(expect.arrayContaining(['4', '5', '6']))
  expect(readFilters(bootFilterShape, new URLSearchParams('hour=24&processors=many&storage=tape'))).toEqual({})
})

test('an absolute start counts more than a period', () => {
  const since = '2026-11-01T00:00:00Z'
  expect(bootListInput({ since, period: '1h' }, now)).toEqual({ since })
})

test('an address with values that nobody knows shows the list without them', () => {
  const query = new URLSearchParams('sort=colour&slower=never&since=yesterday&site=here&cause=gremlins&outcome=ready')
  expect(readFilters(bootFilterShape, query)).toEqual({ outcome: 'ready' })
})

test('a file has the boots of the list', () => {
  expect(bootExportHref({ outcome: 'failed', durationUsMin: 5 }, 'jsonl')).toBe(
    '/api/v1/boot-exports?outcome=failed&durationUsMin=5&format=jsonl',
  )
})
