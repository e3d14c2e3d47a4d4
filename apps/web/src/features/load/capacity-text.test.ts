import { expect, test } from 'vitest'
import { type Capacity, capacityText } from './capacity-text.ts'

const now = new Date('2026-11-20T12:00:00Z')
const at = '2026-11-19T07:30:00.000Z'
const known: Capacity = {
  devices: 60,
  isAtLeast: false,
  limitedBy: 'processor',
  unknownBecause: null,
  basis: {
    from: '2026-11-06T12:00:00.000Z',
    until: now.toISOString(),
    devices: 20,
    processor: { share: 0.2, devices: 20, at },
    link: { share: 0.084, devices: 18, at, linkMbps: 10_000 },
    limitShare: 0.8,
  },
}
const textOf = (changes: Partial<Capacity>) => capacityText({ ...known, ...changes }, now)

test('an estimate names what it is based on', () => {
  const { estimate, basis } = textOf({})
  expect(estimate).toBe('Carries about 60 more devices.')
  expect(basis).toContain('20\u00a0% of its processors with 20 devices')
  expect(basis).toContain('8\u00a0% of its link of 10\u00a0Gbit/s with 18 devices')
  expect(basis).toContain('up to 80\u00a0%')
  expect(basis).toContain('Disks and memory are not part')
})

test('an estimate that ends before the limit, a full edge, and one device are said as they are', () => {
  expect(textOf({ isAtLeast: true }).estimate).toBe('Carries at least 60 more devices.')
  expect(textOf({ devices: 0 }).estimate).toBe('Carries no more devices.')
  expect(textOf({ devices: 1 }).estimate).toBe('Carries about 1 more device.')
})

test('without enough data there is no number', () => {
  const unknown = { devices: null, basis: null, limitedBy: null }
  expect(textOf({ ...unknown, unknownBecause: 'few_devices' })).toEqual({
    estimate: 'How many more devices it carries is not known: not enough data.',
    basis: 'Its highest use in the last 14 days was with fewer than 5 devices.',
  })
  expect(textOf({ ...unknown, unknownBecause: 'not_reported' }).basis).toContain('has not reported')
})
