import { expect, test } from 'vitest'
import { countStates, estimate, firstAndLastReady, stragglersOf, totalsOf } from './storm-figures.ts'
import { atMs, sampleCell, sampleKinds } from './storm-samples.ts'
import { estimateText, stragglerText, summaryText } from './storm-text.ts'

const booting = { state: 'breather', startedAtMs: atMs - 4_000, tookMs: 1_000, phaseMs: 1_000 } as const
const queued = { state: 'queued', bootId: null, startedAtMs: 0, tookMs: 0, kind: -1 } as const
const several = (count: number, changes = {}) => Array.from({ length: count }, (_, index) => sampleCell(index, changes))

test('each device is counted once, and devices that are to do nothing are no part of the storm', () => {
  const cells = [
    ...several(3),
    sampleCell(4, booting),
    sampleCell(5, queued),
    sampleCell(6, { state: 'failed' }),
    sampleCell(7, { state: 'silent' }),
    sampleCell(8, { state: 'no_response' }),
    sampleCell(9, { state: 'idle', bootId: null }),
    sampleCell(10, { state: 'skipped', bootId: null }),
  ]
  const totals = totalsOf(cells)
  expect(totals).toEqual({ devices: 8, booting: 1, queued: 1, ready: 3, unsuccessful: 2, noResponse: 1 })
  expect([...countStates(cells).values()].reduce((a, b) => a + b)).toBe(cells.length)
  expect(summaryText(totals)).toBe(
    '3 of 8 devices ready, 1 booting, 1 waiting for power-on, 2 failed or timed out, 1 without a response.',
  )
})

test('the time left is the remaining devices at the rate of the last minutes', () => {
  // The first began 110 s ago; ten are ready since, so 11 s each.
  const cells = [...several(10), ...several(20, queued)]
  const left = estimate(cells, sampleKinds, atMs)
  expect(left).toEqual({ kind: 'rate', leftMs: 220_000, remaining: 20, readyCount: 10, windowMs: 110_000 })
  expect(estimateText(left).basis).toMatch(/20 devices left; 10 became ready in the last 1.min.50.s/)
})

test('devices that were ready long ago are no rate', () => {
  const cells = [...several(50, { startedAtMs: atMs - 1_200_000 }), ...several(20, queued)]
  expect(estimate(cells, sampleKinds, atMs)).toEqual({ kind: 'unknown' })
})

test('the time left is never shorter than the usual time of the last device that began', () => {
  const cells = [...several(100, { tookMs: 1_000 }), sampleCell(1, { ...booting, startedAtMs: atMs - 500 })]
  expect(estimate(cells, sampleKinds, atMs)).toEqual({ kind: 'usual', leftMs: 9_500, remaining: 1 })
})

test('without a rate it is the usual time, and without that there is no number', () => {
  expect(estimate([sampleCell(1, booting)], sampleKinds, atMs)).toEqual({ kind: 'usual', leftMs: 6_000, remaining: 1 })
  expect(estimate([sampleCell(1, { ...booting, kind: 1 })], sampleKinds, atMs)).toEqual({ kind: 'unknown' })
  expect(estimate([sampleCell(1, booting), sampleCell(2, queued)], sampleKinds, atMs)).toEqual({ kind: 'unknown' })
  expect(estimateText({ kind: 'unknown' }).value).toBe('Not enough data')
  expect(estimate(several(3), sampleKinds, atMs)).toEqual({ kind: 'over' })
})

test('the first and the last ready are those, in their order', () => {
  const cells = Array.from({ length: 25 }, (_, index) => sampleCell(index, { tookMs: 1_000 * ((index * 7) % 25) }))
  const { first, last } = firstAndLastReady([...cells, sampleCell(99, booting)])
  expect(first.map(({ tookMs }) => tookMs / 1_000)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(last.map(({ tookMs }) => tookMs / 1_000)).toEqual([24, 23, 22, 21, 20, 19, 18, 17, 16, 15])
})

test('a straggler is slower than twice the median of its kind, says so, and names the slow phase', () => {
  const slow = sampleCell(1, { ...booting, startedAtMs: atMs - 30_000, phaseMs: 5_000 })
  const slowReady = sampleCell(2, { tookMs: 21_000 })
  const cells = [
    slow,
    slowReady,
    sampleCell(3, { tookMs: 20_000 }),
    sampleCell(4, { ...booting, startedAtMs: atMs - 900_000, kind: 1 }),
    sampleCell(5, { ...booting, startedAtMs: atMs - 900_000, kind: -1 }),
    sampleCell(6, { state: 'failed', tookMs: 90_000 }),
  ]
  const stragglers = stragglersOf(cells, sampleKinds, atMs)
  expect(stragglers.map(({ cell }) => cell)).toEqual([slow, slowReady])
  const [first, second] = stragglers.map((one) => stragglerText(one).replaceAll('\u00a0', ' '))
  expect(first).toBe(
    '30.0 s so far: 3.0 times the median of the 10 boots of Debian, version 3 here, 10.0 s.' +
      ' In Kernel start for 25.0 s, usually 2.00 s.',
  )
  expect(second).toBe('21.0 s until ready: 2.1 times the median of the 10 boots of Debian, version 3 here, 10.0 s.')
})
