import { formatBytes, formatDuration } from '../../lib/format-quantity.ts'

/** What a chart measures. A share is from 0 to 1, and its axis ends there; that of a rate ends above its values. */
export type ChartUnit = 'bytes' | 'bytesPerSecond' | 'perSecond' | 'count' | 'share' | 'rate' | 'us'

const space = '\u00a0'

export function formatChartValue(unit: ChartUnit, value: number | null): string {
  if (value === null) return '–'
  switch (unit) {
    case 'bytes':
      return formatBytes(Math.round(value))
    case 'bytesPerSecond':
      return `${formatBytes(Math.round(value))}/s`
    case 'perSecond':
      return `${shortNumber(value)}/s`
    case 'count':
      return shortNumber(value)
    case 'share':
    case 'rate':
      return `${shortNumber(value * 100)}${space}%`
    case 'us':
      return formatDuration(value)
  }
}

/** One decimal where there is one, and below ten: more of a mean is noise. */
function shortNumber(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 })
}

/** A mark on the axis: without the decimals that the value of a round mark does not have. */
export function formatChartTick(unit: ChartUnit, value: number): string {
  if (value === 0) return '0'
  return formatChartValue(unit, value).replace(/\.0+(?=\u00a0)/, '')
}

const binary = Array.from({ length: 60 }, (_, power) => 2 ** power)
const decimal = Array.from({ length: 17 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat()

/** The distances that marks on the axis may have. */
export function ticksOf(unit: ChartUnit): number[] {
  if (unit === 'bytes' || unit === 'bytesPerSecond') return binary
  if (unit === 'share') return [0.25, 0.5, 1]
  if (unit === 'rate') return [0.01, 0.02, 0.05, 0.1, 0.25, 0.5]
  return unit === 'perSecond' ? [0.1, 0.2, 0.5, ...decimal] : decimal
}

/** Below these an idle edge's noise would fill the chart. */
const topMin: Record<ChartUnit, number> = {
  bytes: 1024 * 1024,
  bytesPerSecond: 1024,
  perSecond: 1,
  count: 1,
  share: 1,
  rate: 0.05,
  us: 1000,
}

/** Every scale begins at 0; that of shares ends at 100 %. @param highest null: there is no value */
export function scaleTop(unit: ChartUnit, highest: number | null): number {
  if (unit === 'share') return 1
  return Math.max((highest ?? 0) * 1.05, topMin[unit])
}
