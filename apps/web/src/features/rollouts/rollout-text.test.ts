import { updateCauses, updateStates } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { countsText, edgeWhyText, type RolloutEdge, waveName } from './rollout-text'

const edge = (changes: Partial<RolloutEdge>): RolloutEdge => ({
  edgeId: '1',
  name: 'edge-1',
  siteId: '2',
  siteName: 'Berlin',
  wave: 0,
  state: 'ordered',
  cause: null,
  progress: null,
  formerVersion: '0.1.0',
  agentVersion: '0.1.0',
  orderedAt: null,
  healthySince: null,
  ...changes,
})

test('every word that an edge says of its order is a sentence', () => {
  for (const progress of updateStates) expect(edgeWhyText(edge({ progress }))).toMatch(/^[A-Z].*\.$/)
  for (const cause of updateCauses) {
    expect(edgeWhyText(edge({ state: 'failed', cause }))).toMatch(/^[A-Z].{8,}\.$/)
    expect(edgeWhyText(edge({ state: 'failed', cause }))).not.toContain('_')
  }
})

test('an edge that was left out has its reason', () => {
  for (const cause of ['revoked', 'deleted', 'other_order', 'cancelled', 'failed', 'silent', 'late'])
    expect(edgeWhyText(edge({ state: 'left', cause }))).toMatch(/^[A-Z].*\.$/)
})

test('counts leave out what is zero', () => {
  const counts = { waiting: 2, ordered: 0, running: 1, failed: 1, silent: 0, late: 0, left: 0 }
  expect(countsText(counts)).toBe('4 edges: 1 updated, 1 rolled back, 2 waiting')
  expect(countsText({ ...counts, waiting: 0, running: 0, failed: 0 })).toBe('no edges')
  expect([waveName(0), waveName(1)]).toEqual(['Canary', 'Wave 2'])
})
