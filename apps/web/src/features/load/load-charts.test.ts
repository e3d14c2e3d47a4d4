import { expect, test } from 'vitest'
import { type Load, loadCharts } from './load-charts.ts'

const nothing = {
  edges: 1,
  streamBytesPerSecond: null,
  fileBytesPerSecond: null,
  sentPeakBytesPerSecond: null,
  streams: null,
  booting: null,
  readsPerSecond: null,
  cacheHitShare: null,
  coldReadMeanUs: null,
  processorShare: null,
  processorPeakShare: null,
  memoryTotalBytes: null,
  memoryAvailableBytes: null,
  fileCacheBytes: null,
  storeTotalBytes: null,
  storeFreeBytes: null,
  linkMbps: null,
}
const memory = { memoryTotalBytes: 100, memoryAvailableBytes: 60 }
const load: Load = {
  from: '2026-11-20T12:00:00.000Z',
  until: '2026-11-20T12:04:20.000Z',
  stepMinutes: 1,
  points: [
    { ...nothing, ...memory, at: '2026-11-20T12:01:00.000Z', streamBytesPerSecond: 7 },
    { ...nothing, ...memory, at: '2026-11-20T12:04:00.000Z', streamBytesPerSecond: 9, memoryAvailableBytes: 110 },
  ],
}
const chartOf = (title: string) => loadCharts(load).find((chart) => chart.title === title)

test('a chart covers its range, with gaps where an edge has reported nothing', () => {
  const begin = Date.parse(load.from) / 1000
  const throughput = chartOf('Throughput')
  expect(throughput?.at).toEqual([0, 60, 120, 180, 240].map((seconds) => begin + seconds))
  expect(throughput?.series[0]?.values).toEqual([null, 7, null, null, 9])
})

test('what is used is the total without what is free, and never negative', () => {
  expect(chartOf('Memory')?.series[0]).toMatchObject({ label: 'Used', values: [null, 40, null, null, 0] })
})

test('lines that are nowhere known are left out, but for the first', () => {
  expect(chartOf('Throughput')?.series.map(({ label }) => label)).toEqual(['Disk stream'])
  expect(chartOf('Store')?.series.map(({ label }) => label)).toEqual(['Used'])
})

test('a range without any point is a chart without lines', () => {
  for (const { series, at } of loadCharts({ ...load, points: [] })) {
    expect(series).toHaveLength(1)
    expect(series[0]?.values).toEqual(at.map(() => null))
  }
})
