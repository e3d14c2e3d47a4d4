import { formatBytes, formatCount, formatOffset } from '../../../lib/format-quantity.ts'
import type { BootDetail } from '../boot-types'

/** What the edge sent over time, below the phases on their axis. */

export type Series = NonNullable<BootDetail['series']>
type SeriesKey = 'bytes' | 'reads' | 'retransmissions'

export interface SeriesRow {
  key: SeriesKey
  title: string
  /** The highest bucket, in words. */
  most: string
  /** `share` is of the highest bucket, above 0 and at most 1. */
  bars: { x: number; width: number; share: number }[]
}

export interface SeriesPoint {
  index: number
  fromUs: number
  toUs: number
  /** By row. */
  values: Record<SeriesKey, string>
}

const titles: Record<SeriesKey, string> = {
  bytes: 'Sent by the edge',
  reads: 'Reads in flight',
  retransmissions: 'Retransmissions',
}
export const seriesKeys = ['bytes', 'reads', 'retransmissions'] as const
const barWidthMin = 1

interface Axis {
  fromUs: number
  toUs: number
}

/** The rows that have anything, with their bars inside of the axis. */
export function layOutSeries(series: Series, axis: Axis, widthPx: number): SeriesRow[] {
  const perUs = widthPx / Math.max(1, axis.toUs - axis.fromUs)
  return usedKeys(series).map((key) => {
    const most = Math.max(...series[key])
    const bars = series[key].flatMap((value, index) => {
      const fromUs = Math.max(axis.fromUs, index * series.widthUs)
      const toUs = Math.min(axis.toUs, (index + 1) * series.widthUs)
      if (value === 0 || toUs <= fromUs) return []
      const width = Math.max(barWidthMin, (toUs - fromUs) * perUs)
      return [{ x: Math.min((fromUs - axis.fromUs) * perUs, widthPx - width), width, share: value / most }]
    })
    return { key, title: titles[key], most: valueText(series, key, most), bars }
  })
}

export function usedKeys(series: Series): SeriesKey[] {
  return seriesKeys.filter((key) => series[key].some((value) => value > 0))
}

/** The bucket of a time; null before the first and after the last. */
export function pointAt(series: Series, us: number): SeriesPoint | null {
  const index = Math.floor(us / series.widthUs)
  if (index < 0 || index >= series.bytes.length) return null
  const text = (key: SeriesKey) => valueText(series, key, series[key][index] ?? 0)
  return {
    index,
    fromUs: index * series.widthUs,
    toUs: (index + 1) * series.widthUs,
    values: { bytes: text('bytes'), reads: text('reads'), retransmissions: text('retransmissions') },
  }
}

/** Bytes with their rate, which tells a full link from an idle one. */
function valueText({ widthUs }: Series, key: SeriesKey, value: number): string {
  if (key !== 'bytes') return formatCount(value)
  return value === 0 ? formatBytes(0) : `${formatBytes(Math.round((value * 1_000_000) / widthUs))}/s`
}

/** A point in words, for screen readers. */
export function pointText(series: Series, { fromUs, toUs, values }: SeriesPoint): string {
  const parts = usedKeys(series).map((key) => `${titles[key]} ${values[key]}`)
  return `${formatOffset(fromUs)} to ${formatOffset(toUs)}: ${parts.join(', ')}`
}
