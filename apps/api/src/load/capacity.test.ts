import { expect, test } from 'vitest'
import { capacityOf, type MeasuredLoad } from './capacity.ts'

const range = { from: new Date('2026-11-06T12:00:00Z'), until: new Date('2026-11-20T12:00:00Z') }
const at = new Date('2026-11-19T07:30:00Z')
const later = new Date('2026-11-20T07:30:00Z')
const load = (devices: number, processor: number | null, link: number | null = null, when = at): MeasuredLoad => ({
  at: when,
  processor: processor === null ? null : { share: processor, devices },
  link: link === null ? null : { share: link, devices, linkMbps: 10_000 },
})
const of = (...loads: MeasuredLoad[]) => capacityOf(loads, range)

test('the resource that comes to its limit first decides, in proportion, and the basis is named', () => {
  // 100 devices take 40 % of the processors: 200 take the limit of 80 %. The link carries 320.
  expect(of(load(100, 0.4, 0.25))).toEqual({
    devices: 100,
    isAtLeast: false,
    limitedBy: 'processor',
    unknownBecause: null,
    basis: {
      from: range.from.toISOString(),
      until: range.until.toISOString(),
      devices: 100,
      processor: { share: 0.4, devices: 100, at: at.toISOString() },
      link: { share: 0.25, devices: 100, at: at.toISOString(), linkMbps: 10_000 },
      limitShare: 0.8,
    },
  })
  expect(of(load(100, 0.4, 0.5))).toMatchObject({ devices: 60, limitedBy: 'link' })
})

test('an edge at its limit carries no more', () => {
  expect(of(load(100, 0.8))).toMatchObject({ devices: 0, limitedBy: 'processor' })
  expect(of(load(100, 1))).toMatchObject({ devices: 0, isAtLeast: false })
})

test('the estimate is of the worst measurement with many devices, and of none with few', () => {
  // Of 20 devices, half of the use may be the machine's own.
  const few = load(20, 0.9)
  expect(of(few, load(100, 0.2), load(60, 0.24, null, later))).toMatchObject({
    devices: 100,
    basis: { devices: 100, processor: { devices: 60, at: later.toISOString() }, link: null },
  })
})

test('what is estimated goes no further than three times what was measured, and says that it ends there', () => {
  expect(of(load(10, 0.05))).toMatchObject({ devices: 30, isAtLeast: true, limitedBy: null })
  expect(of(load(10, 0))).toMatchObject({ devices: 30, isAtLeast: true })
  expect(of(load(10, 0.2))).toMatchObject({ devices: 30, isAtLeast: false })
})

test('two digits are enough', () => {
  expect(of(load(1_000, 0.35))).toMatchObject({ devices: 1_200 })
  expect(of(load(10, 0.45))).toMatchObject({ devices: 7 })
})

test('without enough measurements there is no number', () => {
  expect(of()).toMatchObject({ devices: null, unknownBecause: 'not_reported', basis: null })
  expect(of(load(5, null))).toMatchObject({ devices: null, unknownBecause: 'not_reported' })
  expect(of(load(4, 0.9))).toMatchObject({ devices: null, unknownBecause: 'few_devices', basis: null })
})
