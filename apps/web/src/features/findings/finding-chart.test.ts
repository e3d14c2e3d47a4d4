import { expect, test } from 'vitest'
import { findingChart } from './finding-chart.ts'
import { bootsHref, type FindingDetail, growthText, smallestText } from './finding-text.ts'

const boot = (bootId: string, startedAt: string, totalUs: number, outcome: 'ready' | 'failed' = 'ready') => ({
  bootId,
  startedAt,
  totalUs,
  outcome,
})
const finding = {
  since: '2026-11-20T12:00:00.000Z',
  closedAt: null,
  factor: 'version',
  value: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701',
  valueName: 'version 2',
  site: { id: 'site', name: 'Berlin' },
  vdiskId: 'vdisk',
  evidence: {
    before: [boot('a', '2026-11-20T11:00:00.000Z', 1), boot('b', '2026-11-20T11:00:00.000Z', 2)],
    after: [boot('c', '2026-11-20T12:00:00.000Z', 5), boot('d', '2026-11-20T12:01:00.000Z', 9, 'failed')],
    total: { beforeUs: 1, afterUs: 5 },
  },
} as unknown as FindingDetail

test('each boot that became ready is in the line of its side, at an instant of its own', () => {
  const { at, series, marks } = findingChart(finding)
  expect(series.map(({ label, values }) => [label, values])).toEqual([
    ['Before', [1, 2, null]],
    ['Since', [null, null, 5]],
    ['Median before', [1, 1, null]],
    ['Median since', [null, null, 5]],
  ])
  expect(at.every((second, index) => index === 0 || second > (at[index - 1] ?? second))).toBe(true)
  expect(marks).toEqual([Date.parse(finding.since) / 1000])
})

test('a zoom shows the boots within it, and all where there are none', () => {
  const second = Date.parse(finding.since) / 1000
  expect(findingChart(finding, { from: second - 1, until: second + 1 }).at).toEqual([second])
  expect(findingChart(finding, { from: 0, until: 1 }).at).toHaveLength(3)
})

test('the links lead to the boots of each side', () => {
  expect(bootsHref(finding, 'since', finding.evidence)).toBe(
    '/boots?site=site&vdisk=vdisk&since=2026-11-20T12%3A00%3A00.000Z&version=0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701',
  )
  expect(bootsHref(finding, 'before', finding.evidence)).toBe(
    '/boots?site=site&vdisk=vdisk&since=2026-11-20T11%3A00%3A00.000Z&until=2026-11-20T12%3A00%3A00.000Z',
  )
})

test('a growth has its sign, and the smallest shift is rounded up', () => {
  expect(growthText({ beforeUs: 1_000_000, afterUs: 2_500_000 })).toMatch(/^\+1\.5/)
  expect(growthText({ beforeUs: 2_500_000, afterUs: 1_000_000 })).toMatch(/^−1\.5/)
  expect(smallestText(1.081)).toContain('9 % slower')
  expect(smallestText(null)).toBeNull()
})
