import { expect, test } from 'vitest'
import { sentenceOf, valueNameOf } from './finding-text.ts'
import type { FindingEvidence } from './schema.ts'

const second = 1_000_000
const change = (before: number, after: number) => ({ beforeUs: before * second, afterUs: after * second })
const evidence: FindingEvidence = {
  before: [],
  after: [],
  total: change(15, 17),
  phases: [
    { name: 'dhcp', ...change(1, 0.5), parts: [] },
    {
      name: 'stage2',
      ...change(8, 9.8),
      parts: [
        { name: 'storage', ...change(1, 2.6) },
        { name: 'network', ...change(1, 1.1) },
      ],
    },
  ],
  failedBefore: 0,
  failedAfter: 0,
  failedPhase: null,
  failedCause: null,
  alsoChanged: [],
  smallestShift: null,
}

test('the sentence names the phase that grew most, and the part that explains it', () => {
  expect(sentenceOf('slower', 'version 14', evidence)).toBe(
    'Boots take 2.0 s (13 %) longer since version 14: OS disk streaming +1.8 s, of which storage +1.6 s.',
  )
})

test('a part that explains less than half of a phase, or a phase that did not grow, is not named', () => {
  const phases = evidence.phases.map((phase) => ({ ...phase, parts: phase.parts.slice(1) }))
  expect(sentenceOf('slower', 'version 14', { ...evidence, phases })).toBe(
    'Boots take 2.0 s (13 %) longer since version 14: OS disk streaming +1.8 s.',
  )
  const [dhcp] = evidence.phases
  expect(sentenceOf('slower', 'version 14', { ...evidence, phases: dhcp ? [dhcp] : [] })).toBe(
    'Boots take 2.0 s (13 %) longer since version 14.',
  )
})

test('reads overlap: a part is never said to be longer than its phase', () => {
  const parts = [{ name: 'storage' as const, ...change(1, 21) }]
  const phases = [{ name: 'stage2' as const, ...change(8, 20), parts }]
  expect(sentenceOf('slower', 'version 14', { ...evidence, total: change(15, 27), phases })).toBe(
    'Boots take 12 s (80 %) longer since version 14: OS disk streaming +12 s, of which storage +12 s.',
  )
})

test('values have names, also when they are gone', () => {
  const known = new Map([['a', 'version 14']])
  expect(valueNameOf('version', 'a', known)).toBe('version 14')
  expect(valueNameOf('version', 'b', known)).toBe('a version that is gone')
  expect(valueNameOf('edge_release', '1.2.0', known)).toBe('edge release 1.2.0')
  expect(valueNameOf('setting', 'none', known)).toBe('a change of settings')
  expect(valueNameOf('segment', '10.0.0.0/24', known)).toBe('the boots in segment 10.0.0.0/24')
})
