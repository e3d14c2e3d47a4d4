import { expect, test } from 'vitest'
import { Ledger } from './ledger.ts'
import { beyondLimits, memoryUse, residentBytes } from './memory.ts'
import { parseSoakOptions, soakDefaults } from './options.ts'
import { cutMs, planSoak } from './plan.ts'
import type { SoakResult } from './soak.ts'
import { asMarkdown, problemsOf } from './table.ts'

const plan = (more = {}) => planSoak({ minutes: 20, kills: 100, seed: 7, edgeCount: 3, mortalEdgeCount: 2, ...more })

test('options are read, and each wrong one is named', () => {
  expect(parseSoakOptions([])).toEqual(soakDefaults)
  expect(parseSoakOptions(['--minutes', '1', '--kills', '5', '--seed', '3', '--write'])).toEqual({
    minutes: 1,
    kills: 5,
    seed: 3,
    write: true,
  })
  for (const [args, message] of [
    [['--minutes', '0'], /--minutes needs a whole number from 1 to 120/],
    [['--kills'], /--kills needs a whole number/],
    [['--kills', 'many'], /--kills needs a whole number/],
    [['--for', '3'], /--for is not an option/],
    [['--minutes', '1'], /100 kills do not fit in 1 min: give --kills 15 at most/],
  ] as const)
    expect(() => parseSoakOptions([...args])).toThrow(message)
})

test('a seed gives one order, another seed another', () => {
  expect(plan()).toEqual(plan())
  expect(plan({ seed: 8 })).not.toEqual(plan())
})

test.each([1, 5, 100])(
  '%d kills come in order within the time, evenly of each kind, never of an immortal edge',
  (kills) => {
    const { strikes } = plan({ kills })
    expect(strikes).toHaveLength(kills)
    for (const [index, { atMs, edgeIndex }] of strikes.entries()) {
      expect(Math.floor((atMs * kills) / 1_200_000)).toBe(index)
      expect(edgeIndex).toBeLessThan(2)
    }
    const counts = ['api', 'postgres', 'edge'].map((kind) => strikes.filter(({ victim }) => victim === kind).length)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
  },
)

test('each edge is cut off most of the time, in outages that do not overlap and end with the run', () => {
  for (const minutes of [1, 20]) {
    const { outages } = plan({ minutes })
    expect(outages).toHaveLength(3)
    for (const ofEdge of outages) {
      let lastMs = 0
      for (const { fromMs, untilMs } of ofEdge) {
        expect(fromMs).toBeGreaterThan(lastMs)
        expect(untilMs).toBeGreaterThan(fromMs)
        lastMs = untilMs
      }
      expect(lastMs).toBeLessThanOrEqual(minutes * 60_000)
      expect(cutMs(ofEdge) / (minutes * 60_000)).toBeGreaterThan(0.4)
    }
  }
})

test('an acknowledged change must be there; one in doubt may be, until a later one was acknowledged', () => {
  const ledger = new Ledger()
  ledger.note('a', '1', 'acknowledged')
  ledger.note('a', '2', 'unknown')
  ledger.note('a', '3', 'refused')
  ledger.note('made', 'x', 'unknown')
  const lost = (values: Record<string, string>) => ledger.lost((id) => values[id] ?? null)
  expect(lost({ a: '1' })).toEqual([])
  expect(lost({ a: '2', made: 'x' })).toEqual([])
  expect(lost({ a: '3' })).toEqual(['change of a: 1 was acknowledged last, 3 is there'])
  expect(lost({})).toEqual(['change of a: 1 was acknowledged last, nothing is there'])
  expect(lost({ a: '1', made: 'y' })).toHaveLength(1)
  ledger.note('a', '4', 'acknowledged')
  expect(lost({ a: '2' })).toHaveLength(1)
  expect(lost({ a: '4' })).toEqual([])
  expect(ledger).toMatchObject({ acknowledged: 2, refused: 1, unknown: 2 })
})

test('memory is given by its peak, and by its means before and at the end', () => {
  const series = new Map([
    ['a', [9, 9, 1, 3, 5, 5, 4, 8]],
    ['b', []],
  ])
  const uses = memoryUse(series, { a: 8, b: 8 })
  expect(uses).toEqual([
    { who: 'a', peakBytes: 9, earlyBytes: 2, lateBytes: 6, limitBytes: 8 },
    { who: 'b', peakBytes: 0, earlyBytes: 0, lateBytes: 0, limitBytes: 8 },
  ])
  expect(beyondLimits(uses)).toEqual([expect.stringContaining('memory of a')])
  expect(residentBytes(process.pid)).toBeGreaterThan(1_000_000)
})

const good: SoakResult = {
  minutes: 20.5,
  struck: { api: 2, postgres: 2, edge: 1 },
  cutMinutes: [12, 13, 14],
  drill: { boots: 10, ready: 9, lost: [], miscounted: [], declaredLost: 0 },
  acknowledgements: { lost: 3, passed: 4 },
  changes: { acknowledged: 5, refused: 0, unknown: 1 },
  lostChanges: [],
  refusals: [],
  unsettled: [],
  memory: [{ who: 'API', peakBytes: 1, earlyBytes: 1, lateBytes: 1, limitBytes: 2 }],
}
const circumstances = {
  options: { ...soakDefaults, kills: 5 },
  order: 'api edge1',
  date: '2026-11-21',
  processors: 2,
}

test.each<[Partial<SoakResult>, RegExp]>([
  [{ drill: { ...good.drill, lost: ['x'] } }, /report lost: x/],
  [{ drill: { ...good.drill, miscounted: ['x'] } }, /counted wrong: x/],
  [{ drill: { ...good.drill, declaredLost: 2 } }, /2 reports were declared lost/],
  [{ drill: { ...good.drill, ready: 0 } }, /nothing was tried/],
  [{ lostChanges: ['change of x'] }, /change of x/],
  [{ refusals: ['no'] }, /refused without reason: no/],
  [{ changes: { ...good.changes, acknowledged: 0 } }, /no change was acknowledged/],
  [{ unsettled: ['not all'] }, /not all/],
  [{ memory: [{ who: 'API', peakBytes: 3, earlyBytes: 1, lateBytes: 1, limitBytes: 2 }] }, /memory of API/],
  [{ struck: { api: 1, postgres: 2, edge: 1 } }, /only 4 of 5 kills/],
])('a violation is a problem, and stands in the table: %o', (more, problem) => {
  const result = { ...good, ...more }
  expect(problemsOf(result, 5)).toEqual([expect.stringMatching(problem)])
  expect(asMarkdown(result, circumstances)).toMatch(problem)
})

test('without violations there is no problem', () => {
  expect(problemsOf(good, 5)).toEqual([])
  expect(asMarkdown(good, circumstances)).toContain('Nothing was lost')
})
