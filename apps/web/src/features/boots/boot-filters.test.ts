import { expect, test } from 'vitest'
import { bootListInput } from './boot-filters.ts'

const now = new Date('2026-11-18T12:00:00Z')

test('filters become what the API is asked for', () => {
  expect(bootListInput({}, now)).toEqual({})
  expect(bootListInput({ outcome: 'failed', period: '24h', origin: 'simulated' }, now)).toEqual({
    outcome: 'failed',
    since: '2026-11-17T12:00:00.000Z',
    origin: 'simulated',
  })
  expect(bootListInput({ origin: 'generated' }, now)).toEqual({ origin: 'generated' })
})
