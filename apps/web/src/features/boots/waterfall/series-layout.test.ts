import { expect, test } from 'vitest'
import { layOutSeries, pointAt, pointText, usedKeys } from './series-layout.ts'

const series = {
  widthUs: 100_000,
  bytes: [0, 1_048_576, 524_288, 0],
  reads: [0, 0, 4, 1],
  retransmissions: [0, 0, 0, 0],
}

test('rows without a value are left out, and bars are on the axis of the phases', () => {
  const rows = layOutSeries(series, { fromUs: -100_000, toUs: 300_000 }, 400)
  expect(rows.map(({ key, most }) => [key, most.replaceAll('\u00a0', ' ')])).toEqual([
    ['bytes', '10.0 MiB/s'],
    ['reads', '4'],
  ])
  expect(rows[0]?.bars).toEqual([
    { x: 200, width: 100, share: 1 },
    { x: 300, width: 100, share: 0.5 },
  ])
  // The last bucket is longer than the boot: what is beyond its end is not drawn.
  expect(rows[1]?.bars).toEqual([{ x: 300, width: 100, share: 1 }])
})

test('a bucket is never outside of the plot, however many there are and however narrow it is', () => {
  const many = { ...series, widthUs: 1_000_000, bytes: Array.from({ length: 64 }, () => 1) }
  for (const widthPx of [1, 30, 900])
    for (const { bars } of layOutSeries(many, { fromUs: 0, toUs: 63_100_000 }, widthPx))
      for (const { x, width } of bars) {
        expect(x).toBeGreaterThanOrEqual(0)
        expect(x + width).toBeLessThanOrEqual(widthPx + 0.001)
      }
})

test('a point tells each value of its bucket, and there is none outside of the series', () => {
  expect(pointAt(series, -1)).toBeNull()
  expect(pointAt(series, 400_000)).toBeNull()
  const point = pointAt(series, 299_999)
  expect(point).toMatchObject({ index: 2, fromUs: 200_000, toUs: 300_000 })
  expect(point && pointText(series, point).replaceAll('\u00a0', ' ')).toBe(
    '200 ms to 300 ms: Sent by the edge 5.00 MiB/s, Reads in flight 4',
  )
  expect(usedKeys({ ...series, reads: [0, 0, 0, 0] })).toEqual(['bytes'])
})
