import { expect, test } from 'vitest'
import { type Comparison, failuresText, signedDuration, summaryOf, verdictOf } from './compare-text.ts'

const sample = { bootCount: 20, share: 1, estimatedCount: 20 }
const figures = { bootCount: 20, readyCount: 19, failedCount: 1, p50Us: 1, p95Us: 1, p99Us: 1, phasesUs: [] }
const set = { since: '', until: '', sample, figures, durationCounts: [], fileLists: 0 }
const clear = { difference: 7_000_000, low: 6_000_000, high: 8_000_000, isClear: true }
const phase = (
  name: Comparison['phases'][number]['phase'],
  difference: Comparison['phases'][number]['difference'],
) => ({
  phase: name,
  baseMedianUs: 1,
  setMedianUs: 2,
  difference,
})
const comparison: Comparison = {
  set,
  base: set,
  phases: [phase('dhcp', { ...clear, isClear: false }), phase('loader', clear), phase('total', clear)],
  failures: { difference: 0.02, low: -0.1, high: 0.15, isClear: false },
  durationEdgesUs: [0],
  files: [],
}

test('a clear difference is said with its interval and its largest part, another as what it is', () => {
  expect(summaryOf(comparison).replaceAll('\u00a0', ' ')).toBe(
    'The median boot is 7.00 s slower (+6.00 s to +8.00 s). The largest part of it: Kernel and initramfs download (+7.00 s).',
  )
  const chance = { difference: 1_000, low: -5_000_000, high: 5_000_000, isClear: false }
  expect(summaryOf({ ...comparison, phases: [phase('total', chance)] })).toContain(
    'takes as long, as far as 19 ready boots',
  )
  expect(summaryOf({ ...comparison, phases: [phase('total', null)] })).toContain('Too few boots')
  const empty = { ...set, sample: { ...sample, bootCount: 0 } }
  expect(summaryOf({ ...comparison, base: empty })).toBe('The baseline has no boots.')
  expect([verdictOf(clear).text, verdictOf(chance).text, verdictOf(null).text]).toEqual([
    'slower',
    'may be chance',
    'too few boots',
  ])
  expect(verdictOf({ ...clear, difference: -1 })).toEqual({ text: 'quicker', tone: 'ready' })
})

test('failures are said with counts, and none is no failure of the page', () => {
  expect(failuresText(comparison).replaceAll('\u00a0', ' ')).toBe(
    '5.0 % (1 of 20) failed or timed out, 5.0 % (1 of 20) in the baseline: +2.0 percentage points (−10.0 to +15.0), which may be chance.',
  )
  const none = { ...set, figures: { ...figures, readyCount: 0, failedCount: 0 } }
  expect(failuresText({ ...comparison, base: none, failures: null })).toContain('none of 0 in the baseline.')
})

test('durations have their sign', () => {
  expect([-2_000_000, 0, 2_000].map(signedDuration)).toEqual(['−2.00\u00a0s', '0\u00a0s', '+2.00\u00a0ms'])
})
