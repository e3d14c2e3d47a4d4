import { expect, test } from 'vitest'
import { rangeOfZoom } from './load-range.ts'

const nowMs = Date.parse('2026-11-20T12:00:00Z')
const seconds = (text: string) => Date.parse(`2026-11-20T${text}Z`) / 1000
const of = (from: string, until: string) => rangeOfZoom({ from: seconds(from), until: seconds(until) }, nowMs)

test('a part of a chart is asked for in whole minutes around its middle', () => {
  expect(of('10:00:00', '10:30:00')).toEqual({ rangeMinutes: 30, until: '2026-11-20T10:30:00.000Z' })
  expect(of('10:00:00', '10:00:30')).toEqual({ rangeMinutes: 5, until: '2026-11-20T10:02:45.000Z' })
})

test('no part ends in the future, or is longer than what is kept', () => {
  expect(of('11:00:00', '13:00:00')).toEqual({ rangeMinutes: 120, until: '2026-11-20T12:00:00.000Z' })
  expect(rangeOfZoom({ from: 0, until: seconds('10:00:00') }, nowMs).rangeMinutes).toBe(129_600)
})
