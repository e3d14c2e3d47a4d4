import { expect, test } from 'vitest'
import {
  type Copy,
  copyText,
  missingTexts,
  placementSentences,
  readRule,
  repairText,
  ruleFormOf,
  whyText,
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
  expect(whyText(copy)).toBeNull()
  expect(whyText({ ...copy, state: 'fetching' })).toBeNull()
  const failed: Copy = { ...copy, state: 'lacks', waitsFor: 'failed', untrusted: { message: 'disk full' } }
  expect(whyText(failed)).toBe('The last try failed: disk full. It is tried again. Save the placement to try now.')
  expect(whyText({ ...failed, waitsFor: 'window' })).toBe('Transfers wait for their time of day.')
  expect(whyText({ ...copy, state: 'damaged' })).toMatch(/^Its copy is damaged\./)
})

test('an edge that lacks several versions for one reason has one text, with what to do', () => {
  const edge = (id: string) => ({ id, name: id, siteId: 's', siteName: 'Berlin', isOnline: true })
  const lacking = (versionId: string, edgeId: string, waitsFor: Copy['waitsFor']): Copy =>
    Object.assign({}, copy, { versionId, edgeId, waitsFor, state: 'lacks' })
  const texts = missingTexts({
    versions: [
      { id: 'v3', number: 3 },
      { id: 'v2', number: 2 },
      { id: 'v1', number: 1 },
    ],
    edges: [edge('edge-1'), edge('edge-2')],
    copies: [
      lacking('v1', 'edge-2', 'edge_offline'),
      lacking('v2', 'edge-1', 'base'),
      lacking('v3', 'edge-2', 'edge_offline'),
      lacking('v3', 'edge-1', 'packing'),
      Object.assign({}, copy, { versionId: 'v1', edgeId: 'edge-1' }),
    ],
  })
  expect(texts).toEqual([
    'edge-1, version 3: another edge is making the difference for it.',
    'edge-1, version 2: an earlier version is transferred first.',
    'edge-2, versions 3, 1: the edge is offline. Bring it back, revoke it, or leave it out of the placement.',
  ])
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
    [{ edges: '17' }, '0 to 16 edges'],
    [{ edges: '-1' }, '0 to 16 edges'],
    [{ rateMib: 'fast' }, 'in MiB per second'],
    [{ from: '22:00' }, 'both times'],
    [{ from: '22:00', to: '22:00' }, 'same time of day'],
  ] as const)
    expect(readRule({ ...form, ...more })).toEqual({ problem: expect.stringContaining(problem) })
})
