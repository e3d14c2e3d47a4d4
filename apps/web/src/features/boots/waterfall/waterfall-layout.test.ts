import { describe, expect, test } from 'vitest'
import { absentPhases, elapsedOf, labelSide, layOutWaterfall, type WaterfallPhase } from './waterfall-layout.ts'

const phase = (name: WaterfallPhase['name'], startUs: number, durationUs: number | null): WaterfallPhase => ({
  name,
  startUs,
  durationUs,
  gaps: [],
})

describe('layOutWaterfall', () => {
  test('bars stand on one scale in the order of the chain, whatever order they came in', () => {
    const { bars, totalUs } = layOutWaterfall({
      phases: [phase('loader', 500_000, 500_000), phase('dhcp', 0, 250_000), phase('nbp', 250_000, 250_000)],
      running: false,
      elapsedUs: 1_000_000,
      widthPx: 400,
    })
    expect(totalUs).toBe(1_000_000)
    expect(bars.map(({ name, x, width }) => ({ name, x, width }))).toEqual([
      { name: 'dhcp', x: 0, width: 100 },
      { name: 'nbp', x: 100, width: 100 },
      { name: 'loader', x: 200, width: 200 },
    ])
  })

  test('a running phase grows to the present; one of a boot that is over ends with it and is not open', () => {
    const input = { phases: [phase('dhcp', 0, 100), phase('nbp', 100, null)], elapsedUs: 1100, widthPx: 110 }
    const running = layOutWaterfall({ ...input, running: true }).bars[1]
    expect(running).toMatchObject({ x: 10, width: 100, endUs: 1100, open: true })
    expect(layOutWaterfall({ ...input, running: false }).bars[1]).toMatchObject({ endUs: 1100, open: false })
  })

  test('the shortest phase is still seen, also at the very end, and no bar leaves the plot', () => {
    const { bars } = layOutWaterfall({
      phases: [phase('stage2', 0, 10_000_000), phase('ready', 10_000_000, 0)],
      running: false,
      elapsedUs: 10_000_000,
      widthPx: 300,
    })
    expect(bars[1]).toMatchObject({ x: 298, width: 2 })
  })

  test('a gap stands inside its phase and is cut at its end; one after it is left out', () => {
    const gaps = [
      { atUs: 400, durationUs: 800 },
      { atUs: 1200, durationUs: 10 },
    ]
    const { bars } = layOutWaterfall({
      phases: [{ ...phase('nbp', 0, 1000), gaps }],
      running: false,
      elapsedUs: 1000,
      widthPx: 100,
    })
    expect(bars[0]?.gaps).toEqual([{ atUs: 400, durationUs: 800, x: 40, width: 60 }])
  })

  test('a boot without any phase has an axis and no bar', () => {
    const { bars, ticks, totalUs } = layOutWaterfall({
      phases: [],
      running: true,
      elapsedUs: 0,
      widthPx: 300,
    })
    expect(bars).toEqual([])
    expect(totalUs).toBe(1)
    expect(ticks.length).toBeGreaterThan(0)
  })

  test('ticks are round and inside the plot', () => {
    const { ticks } = layOutWaterfall({ phases: [], running: false, elapsedUs: 7_300_000, widthPx: 720 })
    expect(ticks.map(({ us }) => us / 1_000_000)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(ticks.every(({ x }) => x >= 0 && x <= 720)).toBe(true)
  })
})

describe('steps of the device', () => {
  const input = { phases: [phase('dhcp', 0, 1_000_000)], running: false, elapsedUs: 1_000_000, widthPx: 200 }
  const step = (group: 'firmware' | 'kernel' | 'unit', startUs: number, durationUs: number) => ({
    group,
    name: `${group} ${startUs}`,
    startUs,
    durationUs,
  })

  test('stand on the phases’ axis, which begins with the firmware', () => {
    const steps = [step('kernel', 500_000, 250_000), step('firmware', -1_000_000, 500_000)]
    const layout = layOutWaterfall({ ...input, steps })
    expect(layout.axis).toEqual({ fromUs: -1_000_000, toUs: 1_000_000 })
    expect(layout.totalUs).toBe(1_000_000)
    expect(layout.bars[0]).toMatchObject({ x: 100, width: 100 })
    expect(layout.steps.map(({ group, x, width }) => [group, x, width])).toEqual([
      ['firmware', 0, 50],
      ['kernel', 150, 25],
    ])
    expect(layout.ticks.map(({ us }) => us)).toContain(0)
  })

  test('that go on after the boot are shown, but do not press it into a corner', () => {
    const shortly = layOutWaterfall({ ...input, steps: [step('unit', 0, 1_200_000)] })
    expect(shortly.axis.toUs).toBe(1_200_000)
    const long = layOutWaterfall({ ...input, steps: [step('unit', 0, 60_000_000)] })
    expect(long.axis.toUs).toBe(1_500_000)
    expect(long.steps[0]).toMatchObject({ x: 0, width: 200 })
  })

  test('of a broken clock stay inside the picture', () => {
    const far = Number.MAX_SAFE_INTEGER
    const layout = layOutWaterfall({
      ...input,
      steps: [step('firmware', -far, far), step('unit', far, far)],
    })
    expect(layout.axis.fromUs).toBe(-600_000_000)
    for (const { x, width } of layout.steps) {
      expect(x).toBeGreaterThanOrEqual(0)
      expect(x + width).toBeLessThanOrEqual(200)
    }
  })
})

test('a phase that the chain went past is not part of the boot, a later one was not reached', () => {
  expect(absentPhases([{ name: 'dhcp' }, { name: 'nbp' }, { name: 'loader' }, { name: 'breather' }])).toEqual({
    notPartOfThisBoot: ['firmware', 'stage1'],
    notReached: ['stage2', 'ready'],
  })
  expect(absentPhases([])).toMatchObject({ notPartOfThisBoot: [] })
})

test('a label stands after its bar, before it where there is no room, and on it where there is none at all', () => {
  expect(labelSide({ x: 0, width: 50 }, 40, 100)).toBe('after')
  expect(labelSide({ x: 50, width: 30 }, 40, 100)).toBe('before')
  expect(labelSide({ x: 10, width: 85 }, 40, 100)).toBe('inside')
})

describe('elapsedOf', () => {
  const now = new Date('2026-11-18T12:00:10Z')
  const boot = { startedAt: '2026-11-18T12:00:02Z', totalUs: 5_000_000, outcome: null }
  test('a running boot is as old as its begin says', () => {
    expect(elapsedOf(boot, now)).toBe(8_000_000)
  })
  test('a clock that is wrong by years is not believed', () => {
    expect(elapsedOf({ ...boot, startedAt: '1980-01-01T00:00:00Z' }, now)).toBe(5_000_000)
    expect(elapsedOf({ ...boot, startedAt: '2030-01-01T00:00:00Z' }, now)).toBe(5_000_000)
  })
  test('a boot that is over does not grow', () => {
    expect(elapsedOf({ ...boot, outcome: 'ready' }, now)).toBe(5_000_000)
  })
})
