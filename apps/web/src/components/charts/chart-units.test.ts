import { expect, test } from 'vitest'
import { formatChartTick, formatChartValue, scaleTop, ticksOf } from './chart-units.ts'

test('each value has its unit, and one that is not known is a dash', () => {
  expect(formatChartValue('bytesPerSecond', 1_398_101.4)).toBe('1.33\u00a0MiB/s')
  expect(formatChartValue('bytes', 512.4)).toBe('512\u00a0B')
  expect(formatChartValue('perSecond', 13.33)).toBe('13/s')
  expect(formatChartValue('count', 5.25)).toBe('5.3')
  expect(formatChartValue('share', 0.256)).toBe('26\u00a0%')
  expect(formatChartValue('share', 0.005)).toBe('0.5\u00a0%')
  expect(formatChartValue('us', 3_200)).toBe('3.20\u00a0ms')
  expect(formatChartValue('us', null)).toBe('–')
})

test('marks of an axis are round', () => {
  expect(formatChartTick('bytesPerSecond', 4 * 1024 * 1024)).toBe('4\u00a0MiB/s')
  expect(formatChartTick('us', 20_000)).toBe('20\u00a0ms')
  expect(formatChartTick('share', 0.25)).toBe('25\u00a0%')
  expect(formatChartTick('rate', 0.05)).toBe('5\u00a0%')
  expect(formatChartTick('bytes', 0)).toBe('0')
  expect(ticksOf('bytes')).toContain(1024)
  expect(ticksOf('count')).not.toContain(0.5)
})

test('a scale begins at 0, has room above, and ends at 100 % for shares', () => {
  expect(scaleTop('share', 0.3)).toBe(1)
  expect(scaleTop('rate', 0.2)).toBeCloseTo(0.21)
  expect(scaleTop('count', 100)).toBe(105)
  expect(scaleTop('count', null)).toBe(1)
  expect(scaleTop('us', 10)).toBe(1000)
})
