import { expect, test } from 'vitest'
import { randomNumbers } from '../../test/seeded/random-numbers.ts'
import { binOf, cellsOf, durationEdges, figuresOf, grouped, quantileOf, stepOf, stepsMax } from './figures.ts'
import type { SampledBoot } from './read-sample.ts'

function bootOf(changes: Partial<SampledBoot>): SampledBoot {
  return {
    id: 'boot',
    startedMs: 0,
    durationUs: 1_000_000,
    outcome: 'ready',
    siteId: 'site',
    edgeId: 'edge',
    deviceId: null,
    collectionId: null,
    versionId: null,
    failedCause: null,
    clientArch: null,
    processors: null,
    memoryMib: null,
    networkCard: null,
    storage: null,
    hardwareModel: null,
    edgeRelease: null,
    segment: null,
    isCold: null,
    phases: [],
    ...changes,
  }
}

test('percentiles are those of ready boots, and phases add up to their mean', () => {
  const phases = [
    { name: 'dhcp', durationUs: 200_000 },
    { name: 'stage2', durationUs: 700_000 },
  ]
  const ready = Array.from({ length: 100 }, (_, index) => bootOf({ durationUs: (index + 1) * 1_000_000, phases }))
  const figures = figuresOf([...ready, bootOf({ outcome: 'failed', durationUs: 9e9 }), bootOf({ outcome: 'silent' })])
  expect(figures).toMatchObject({ bootCount: 102, readyCount: 100, failedCount: 2 })
  expect([figures.p50Us, figures.p95Us, figures.p99Us]).toEqual([50e6, 95e6, 99e6])
  expect(figures.phasesUs.reduce((sum, us) => sum + us)).toBe(50_500_000)
  expect(figures.phasesUs[1]).toBe(200_000)
  expect(figuresOf([])).toMatchObject({ bootCount: 0, p50Us: null, p99Us: null })
})

test('a quantile is a value of the set that its share does not exceed', () => {
  const below = randomNumbers(3)
  for (let turn = 0; turn < 200; turn += 1) {
    const values = Array.from({ length: 1 + below(50) }, () => below(1000)).sort((a, b) => a - b)
    const share = below(1001) / 1000
    const quantile = quantileOf(values, share) ?? Number.NaN
    expect(values).toContain(quantile)
    expect(values.filter((value) => value <= quantile).length).toBeGreaterThanOrEqual(share * values.length - 1e-9)
    expect(values.filter((value) => value < quantile).length).toBeLessThanOrEqual(share * values.length)
  }
})

test('every boot that is over is in exactly one cell, which holds its start and duration', () => {
  const below = randomNumbers(11)
  for (let turn = 0; turn < 200; turn += 1) {
    const boots = Array.from({ length: below(60) }, () =>
      bootOf({ startedMs: below(86_400_000), durationUs: below(5) === 0 ? null : below(2 ** (1 + below(31))) }),
    )
    const over = boots.flatMap(({ durationUs }) => durationUs ?? [])
    const edges = durationEdges(over)
    expect(edges.length).toBeLessThanOrEqual(28)
    expect(edges).toEqual([...new Set(edges)].toSorted((a, b) => a - b))
    const cells = cellsOf(boots, { stepAt: (ms) => Math.floor(ms / 3_600_000), edges })
    expect(cells.counts.reduce((sum, count) => sum + count, 0)).toBe(over.length)
    for (const us of over) {
      const bin = binOf(edges, us)
      expect(us < (edges[bin + 1] ?? Number.POSITIVE_INFINITY)).toBe(true)
      if (bin > 0) expect(us).toBeGreaterThanOrEqual(edges[bin] ?? 0)
      expect(cells.bins).toContain(bin)
    }
  }
})

test('a span has as many steps as fit, of a round length', () => {
  expect(stepOf(7 * 86_400_000)).toBe(3 * 3_600_000)
  expect(stepOf(3_600_000)).toBe(60_000)
  for (const days of [0.001, 1, 30, 92])
    expect((days * 86_400_000) / stepOf(days * 86_400_000)).toBeLessThanOrEqual(stepsMax)
})

test('groups hold every boot once, the largest first', () => {
  const boots = ['a', 'b', 'b', null].map((versionId) => bootOf({ versionId }))
  const groups = grouped(boots, ({ versionId }) => versionId)
  expect(groups.map(([value, some]) => [value, some.length])).toEqual([
    ['b', 2],
    ['a', 1],
    [null, 1],
  ])
})
