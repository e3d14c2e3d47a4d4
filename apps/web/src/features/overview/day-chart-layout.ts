import { scaleLinear } from 'd3-scale'

export interface DayOfBoots {
  day: string
  readyCount: number
  failedCount: number
  generatedCount: number
  p50Us: number | null
  p95Us: number | null
}

export interface DayColumn {
  day: DayOfBoots
  /** Middle of the column. */
  x: number
  width: number
  readyHeight: number
  failedHeight: number
  p50Y: number | null
  p95Y: number | null
}

interface Frame {
  widthPx: number
  /** Height of the plot of durations, above, and of the plot of counts, below. */
  durationHeight: number
  countHeight: number
}

interface DayChartLayout {
  columns: DayColumn[]
  durationTicks: { us: number; y: number }[]
  countMax: number
}

const columnShare = 0.62

/** Durations from the top's own scale, counts from the bottom's; both begin at 0. */
export function layOutDayChart(days: DayOfBoots[], { widthPx, durationHeight, countHeight }: Frame): DayChartLayout {
  const highestUs = Math.max(0, ...days.map(({ p50Us, p95Us }) => Math.max(p50Us ?? 0, p95Us ?? 0)))
  const durations = scaleLinear()
    .domain([0, Math.max(1, highestUs)])
    .nice(3)
    .range([durationHeight, 0])
  const countMax = Math.max(1, ...days.map(({ readyCount, failedCount }) => readyCount + failedCount))
  const heights = scaleLinear().domain([0, countMax]).range([0, countHeight])
  const step = widthPx / Math.max(1, days.length)
  return {
    columns: days.map((day, index) => ({
      day,
      x: (index + 0.5) * step,
      width: Math.max(1, step * columnShare),
      readyHeight: heights(day.readyCount),
      failedHeight: heights(day.failedCount),
      p50Y: day.p50Us === null ? null : durations(day.p50Us),
      p95Y: day.p95Us === null ? null : durations(day.p95Us),
    })),
    // If there is nothing to scale, any number beside the axis would be invented.
    durationTicks: (highestUs === 0 ? [0] : durations.ticks(3)).map((us) => ({ us, y: durations(us) })),
    countMax,
  }
}

/** A day with a value but without a neighbour with one: a line needs two points to be visible. */
const alonePx = 6

/** An SVG path through the days that have a value; a day without one breaks the line. */
export function linePath(points: { x: number; y: number | null }[]): string {
  const isThere = (index: number) => (points[index]?.y ?? null) !== null
  let path = ''
  for (const [index, { x, y }] of points.entries()) {
    if (y === null) continue
    const [before, after] = [isThere(index - 1), isThere(index + 1)]
    if (before) path += `L${x.toFixed(1)} ${y.toFixed(1)}`
    else if (after) path += `M${x.toFixed(1)} ${y.toFixed(1)}`
    else path += `M${(x - alonePx / 2).toFixed(1)} ${y.toFixed(1)}h${alonePx}`
  }
  return path
}
