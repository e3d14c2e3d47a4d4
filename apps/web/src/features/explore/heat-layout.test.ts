import { expect, test } from 'vitest'
import { countText, sampleText } from './count-text.ts'
import {
  boxOfRange,
  cellPaths,
  countIn,
  type Exploration,
  levelBounds,
  levelOf,
  levels,
  rangeOf,
  rangeOfBox,
  timeLabels,
} from './heat-layout.ts'

const hourMs = 3_600_000
const stepAt = (index: number) => new Date(Date.parse('2026-11-17T21:00:00Z') + index * hourMs).toISOString()
const exploration = {
  stepMs: hourMs,
  steps: Array.from({ length: 30 }, (_, index) => ({ at: stepAt(index) })),
  durationEdgesUs: [0, 10_000_000, 20_000_000],
  cells: { steps: [0, 0, 4], bins: [0, 2, 1], counts: [1, 7, 300] },
} as unknown as Exploration

test('shades grow with the count, from the first to the last', () => {
  for (const most of [1, 2, 7, 300, 1_000_000]) {
    expect(levelOf(most, most)).toBe(levels)
    const bounds = levelBounds(most)
    expect(bounds.map(({ from }) => levelOf(from, most))).toEqual(bounds.map(({ level }) => level))
    expect(bounds[0]?.from).toBe(1)
    for (let count = 1; count < Math.min(most, 500); count += 1)
      expect(levelOf(count + 1, most)).toBeGreaterThanOrEqual(levelOf(count, most))
  }
})

test('a cell is one square, with the longest boots on top', () => {
  const paths = cellPaths(exploration)
  expect(paths.map(({ path }) => path).join('')).toBe('M0 2h1v1h-1zM0 0h1v1h-1zM4 1h1v1h-1z')
  expect(paths.at(-1)?.level).toBe(levels)
})

test('a box is the cells it was made of, also where it reaches beyond the map', () => {
  const range = rangeOf({ step: 4, bin: 1 }, { step: 2, bin: 2 })
  expect(range).toEqual({ from: { step: 2, bin: 1 }, until: { step: 4, bin: 2 } })
  expect(countIn(exploration, range)).toBe(300)
  const box = boxOfRange(exploration, range)
  expect(box).toMatchObject({ sinceMs: Date.parse(stepAt(2)), untilMs: Date.parse(stepAt(5)), minUs: 1e7, maxUs: null })
  expect(rangeOfBox(exploration, box)).toEqual(range)
  expect(boxOfRange(exploration, rangeOf({ step: 0, bin: 1 }, { step: 0, bin: 1 })).maxUs).toBe(19_999_999)
  expect(rangeOfBox(exploration, { ...box, sinceMs: 0, untilMs: 1 })).toBeNull()
  expect(rangeOfBox(exploration, { ...box, sinceMs: 0, untilMs: 9e15 })?.until.step).toBe(29)
})

test('labels of time stand at full hours and days', () => {
  const { indexes, hasDaysAlone } = timeLabels(exploration, 6)
  expect(hasDaysAlone).toBe(false)
  expect(indexes.map((index) => stepAt(index).slice(11, 13))).toEqual(['00', '06', '12', '18', '00'])
  expect(timeLabels(exploration, 1)).toEqual({ hasDaysAlone: true, indexes: [27] })
})

test('an estimate shows two digits and that it is one', () => {
  expect(countText(12, 1)).toBe('12')
  expect(countText(123, 0.002)).toBe('≈\u00a062,000')
  expect(countText(0, 0.002)).toBe('0')
  expect(sampleText({ bootCount: 1, share: 1, estimatedCount: 1 })).toBe('All 1 boot of these filters.')
  expect(sampleText({ bootCount: 10_012, share: 0.002, estimatedCount: 5_006_000 })).toBe(
    'From a random sample of 10,012 boots: 0.2\u00a0% of about 5,000,000 boots.',
  )
})
