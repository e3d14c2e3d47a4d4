import { expect, test } from 'vitest'
import { type DayOfBoots, layOutDayChart, linePath } from './day-chart-layout.ts'

const day = (name: string, change: Partial<DayOfBoots> = {}): DayOfBoots => ({
  day: name,
  readyCount: 0,
  failedCount: 0,
  generatedCount: 0,
  p50Us: null,
  p95Us: null,
  ...change,
})
const frame = { widthPx: 100, durationHeight: 50, countHeight: 20 }

test('durations and counts have scales of their own that begin at 0', () => {
  const { columns, countMax } = layOutDayChart(
    [
      day('2026-11-17', { readyCount: 8, failedCount: 2, p50Us: 5_000_000, p95Us: 10_000_000 }),
      day('2026-11-18', { readyCount: 5, p50Us: 10_000_000, p95Us: 10_000_000 }),
    ],
    frame,
  )
  expect(countMax).toBe(10)
  expect(columns[0]).toMatchObject({ x: 25, readyHeight: 16, failedHeight: 4, p50Y: 25, p95Y: 0 })
  expect(columns[1]).toMatchObject({ x: 75, readyHeight: 10, failedHeight: 0, p50Y: 0 })
})

test('days without boots leave their place empty, and the axis has no other number than 0', () => {
  const { columns, durationTicks } = layOutDayChart([day('2026-11-17'), day('2026-11-18')], frame)
  expect(columns.every(({ p50Y, readyHeight }) => p50Y === null && readyHeight === 0)).toBe(true)
  expect(durationTicks).toEqual([{ us: 0, y: frame.durationHeight }])
})

test('a day without a value breaks the line', () => {
  expect(
    linePath([
      { x: 0, y: 1 },
      { x: 10, y: 2 },
      { x: 20, y: null },
      { x: 30, y: 3 },
      { x: 40, y: 4 },
    ]),
  ).toBe('M0.0 1.0L10.0 2.0M30.0 3.0L40.0 4.0')
})

test('a day whose neighbours have no value is seen all the same', () => {
  expect(
    linePath([
      { x: 0, y: null },
      { x: 10, y: 2 },
      { x: 20, y: null },
      { x: 30, y: 3 },
    ]),
  ).toBe('M7.0 2.0h6M27.0 3.0h6')
})
