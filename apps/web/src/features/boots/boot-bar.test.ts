import { expect, test } from 'vitest'
import { barScaleUs, scaleText } from './boot-bar.tsx'

const boots = (...seconds: number[]) => seconds.map((one) => ({ totalUs: one * 1_000_000 }))

test('a scale ends at a round number that nine of ten boots fit', () => {
  expect(barScaleUs(boots(8, 9, 13, 13, 13, 13, 13, 13, 13.2, 312))).toBe(15_000_000)
  expect(barScaleUs(boots(0.2))).toBe(1_000_000)
  expect(barScaleUs([])).toBe(1_000_000)
  expect(barScaleUs(boots(7200))).toBe(7_200_000_000)
})

test('a scale is stated in one unit, without zeros behind the point', () => {
  expect(scaleText(15_000_000)).toBe('0 to 15\u00a0s')
  expect(scaleText(1_000_000)).toBe('0 to 1\u00a0s')
  expect(scaleText(120_000_000)).toBe('0 to 2\u00a0min')
})
