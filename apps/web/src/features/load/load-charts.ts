import type { TimeChartData } from '../../components/charts/time-chart'
import type { ChartSeries } from '../../components/charts/use-time-plot'
import type { RouterOutputs } from '../../lib/trpc'

export type Load = RouterOutputs['load']['ofEdge']
type Point = Load['points'][number]
type Line = Pick<ChartSeries, 'label' | 'colour' | 'dashed'> & { of: (point: Point) => number | null }
type Chart = Omit<TimeChartData, 'at' | 'series'> & { lines: Line[] }

const charts: Chart[] = [
  {
    title: 'Throughput',
    hint: 'Sent to devices. Peak: the most between two heartbeats.',
    unit: 'bytesPerSecond',
    lines: [
      { label: 'Disk stream', colour: 'a', of: (point) => point.streamBytesPerSecond },
      { label: 'Boot files', colour: 'b', of: (point) => point.fileBytesPerSecond },
      { label: 'Peak', colour: 'c', dashed: true, of: (point) => point.sentPeakBytesPerSecond },
    ],
  },
  {
    title: 'Devices',
    hint: 'On average at once.',
    unit: 'count',
    lines: [
      { label: 'Streaming', colour: 'a', of: (point) => point.streams },
      { label: 'Booting', colour: 'b', dashed: true, of: (point) => point.booting },
    ],
  },
  {
    title: 'Processors',
    hint: 'In use, without work that yields to boots.',
    unit: 'share',
    lines: [
      { label: 'Mean', colour: 'a', of: (point) => point.processorShare },
      { label: 'Peak', colour: 'c', dashed: true, of: (point) => point.processorPeakShare },
    ],
  },
  {
    title: 'Disk reads of devices',
    unit: 'perSecond',
    lines: [{ label: 'Reads', colour: 'a', of: (point) => point.readsPerSecond }],
  },
  {
    title: 'Cache hits',
    hint: 'Reads answered from memory.',
    unit: 'share',
    lines: [{ label: 'Hits', colour: 'a', of: (point) => point.cacheHitShare }],
  },
  {
    title: 'Disk latency',
    hint: 'Mean wait of reads that were not in memory.',
    unit: 'us',
    lines: [{ label: 'Mean', colour: 'a', of: (point) => point.coldReadMeanUs }],
  },
  {
    title: 'Memory',
    unit: 'bytes',
    lines: [
      { label: 'Used', colour: 'a', of: (point) => less(point.memoryTotalBytes, point.memoryAvailableBytes) },
      { label: 'File cache', colour: 'b', of: (point) => point.fileCacheBytes },
      { label: 'Total', colour: 'c', dashed: true, of: (point) => point.memoryTotalBytes },
    ],
  },
  {
    title: 'Store',
    unit: 'bytes',
    lines: [
      { label: 'Used', colour: 'a', of: (point) => less(point.storeTotalBytes, point.storeFreeBytes) },
      { label: 'Total', colour: 'c', dashed: true, of: (point) => point.storeTotalBytes },
    ],
  },
]

function less(total: number | null, free: number | null): number | null {
  return total === null || free === null ? null : Math.max(0, total - free)
}

/** Charts over the whole range; steps that nothing is known of are gaps. A line that is nowhere known is left out. */
export function loadCharts({ from, until, stepMinutes, points }: Load): TimeChartData[] {
  const stepSeconds = stepMinutes * 60
  const begin = Date.parse(from) / 1000
  const steps = Math.max(1, Math.ceil((Date.parse(until) / 1000 - begin) / stepSeconds))
  const at = Array.from({ length: steps }, (_, index) => begin + index * stepSeconds)
  const pointAt = new Map(points.map((point) => [Date.parse(point.at) / 1000, point]))
  return charts.map(({ lines, ...chart }) => ({
    ...chart,
    at,
    series: lines
      .map(({ of, ...line }) => {
        const valueAt = (second: number) => {
          const point = pointAt.get(second)
          return point ? of(point) : null
        }
        return { ...line, values: at.map(valueAt) }
      })
      .filter(({ values }, index) => index === 0 || values.some((value) => value !== null)),
  }))
}
