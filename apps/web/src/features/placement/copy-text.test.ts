import { expect, test } from 'vitest'
import {
  type Copy,
  copyText,
  lackText,
  placementSentences,
  readRule,
  remedyText,
  repairText,
  ruleFormOf,
} from './copy-text'

const copy: Copy = {
  versionId: 'v',
  edgeId: 'e',
  state: 'holds',
  waitsFor: null,
  retryAt: null,
  progressBytes: 0,
  totalBytes: 0,
  untrusted: { message: null },
  repaired: 0,
  notRepaired: 0,
}
const all = { edges: null, rateBytesPerSecond: null, window: null }

test('a copy says how far it is, and why it is not there', () => {
  expect(copyText(copy)).toBe('holds')
  expect(copyText({ ...copy, state: 'fetching' })).toBe('fetching')
  expect(copyText({ ...copy, state: 'fetching', progressBytes: 2, totalBytes: 3 })).toBe('fetching 66 %')
  expect(lackText(copy)).toBeNull()
  const failed: Copy = { ...copy, state: 'lacks', waitsFor: 'failed', untrusted: { message: 'disk full' } }
  expect(lackText(failed)).toBe('the last try failed: disk full')
  expect(lackText({ ...failed, waitsFor: 'window' })).toBe('it waits for its time of day')
})

test('an edge that gets nothing by itself has a remedy', () => {
  expect(remedyText({ ...copy, state: 'lacks', waitsFor: 'edge_offline' })).toMatch(/revoke it/)
  expect(remedyText({ ...copy, state: 'damaged' })).toMatch(/damaged/)
  expect(remedyText({ ...copy, state: 'lacks', waitsFor: 'window' })).toBeNull()
  expect(remedyText({ ...copy, state: 'fetching' })).toBeNull()
})

test('a copy says what was repaired of it', () => {
  expect(repairText(copy)).toBeNull()
  expect(repairText({ ...copy, repaired: 1 })).toBe('1 block repaired')
  expect(repairText({ ...copy, repaired: 2, notRepaired: 1 })).toBe('2 blocks repaired, 1 repair failed')
})

test('a placement is told in sentences', () => {
  expect(placementSentences({ revision: 1, isInherited: true, others: all, sites: [] })).toEqual([
    'All edges of each site.',
  ])
  const berlin = { edges: 1, rateBytesPerSecond: 10 * 1024 ** 2, window: { from: '22:00', to: '06:00' } }
  const sites = [
    { siteId: 's', siteName: 'Berlin', ...berlin },
    { siteId: 't', siteName: 'Paris', ...all, edges: 0 },
  ]
  expect(placementSentences({ revision: 1, isInherited: false, others: null, sites })).toEqual([
    'No edge of each other site.',
    expect.stringMatching(/^Berlin: 1 edge, at most 10(\.0)?\sMiB per second each, from 22:00 to 06:00\.$/),
    'Paris: no edge.',
  ])
})

test('a form becomes the rule that it shows, or says what is wrong', () => {
  for (const rule of [all, { edges: 2, rateBytesPerSecond: 1024 ** 2, window: { from: '22:00', to: '06:00' } }])
    expect(readRule(ruleFormOf(rule))).toEqual({ rule })
  expect(readRule(ruleFormOf(null))).toEqual({ rule: { ...all, edges: 0 } })
  const form = ruleFormOf(all)
  for (const [more, problem] of [
    [{ edges: '17' }, 'at most 16 edges'],
    [{ edges: '-1' }, 'at most 16 edges'],
    [{ rateMib: 'fast' }, 'in MiB per second'],
    [{ from: '22:00' }, 'both times'],
    [{ from: '22:00', to: '22:00' }, 'ends when it begins'],
  ] as const)
    expect(readRule({ ...form, ...more })).toEqual({ problem: expect.stringContaining(problem) })
})
