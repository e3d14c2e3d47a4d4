import type { RouterOutputs } from '../../lib/trpc'
import type { Box } from './explore-inputs'

export type Exploration = RouterOutputs['explore']['get']

/** Shades from few boots to many, in logarithmic steps: a storm has a thousand times the boots of a night. */
export const levels = 6

export interface Cell {
  step: number
  bin: number
}

/** The cells of a rectangle, both corners included. */
export interface CellRange {
  from: Cell
  until: Cell
}

/** The shade of a count, from 1. @param most the largest count of the map */
export function levelOf(count: number, most: number): number {
  if (most <= 1) return levels
  return Math.min(levels, 1 + Math.floor((Math.log(count) / Math.log(most)) * levels))
}

/** The least count of each shade, ascending; shades that no count has are left out. */
export function levelBounds(most: number): { level: number; from: number }[] {
  const bounds: { level: number; from: number }[] = []
  for (let level = 1; level <= levels; level += 1) {
    let from = Math.max(1, Math.floor(most ** ((level - 1) / levels)))
    while (levelOf(from, most) < level) from += 1
    if (from <= most && levelOf(from, most) === level) bounds.push({ level, from })
  }
  return bounds
}

/** One SVG path for each shade, in units of cells: a thousand elements would be laid out one by one. */
export function cellPaths({ cells, durationEdgesUs }: Exploration): { level: number; path: string }[] {
  const most = cells.counts.reduce((largest, count) => Math.max(largest, count), 0)
  const paths = Array.from({ length: levels }, (_, index) => ({ level: index + 1, path: '' }))
  for (const [index, count] of cells.counts.entries()) {
    const path = paths[levelOf(count, most) - 1]
    if (path) path.path += `M${cells.steps[index]} ${durationEdgesUs.length - 1 - (cells.bins[index] ?? 0)}h1v1h-1z`
  }
  return paths.filter(({ path }) => path !== '')
}

export function countsOf({ cells, durationEdgesUs }: Exploration): (cell: Cell) => number {
  const width = durationEdgesUs.length
  const counts = new Map(
    cells.counts.map((count, index) => [(cells.steps[index] ?? 0) * width + (cells.bins[index] ?? 0), count]),
  )
  return ({ step, bin }) => counts.get(step * width + bin) ?? 0
}

export function rangeOf(a: Cell, b: Cell): CellRange {
  return {
    from: { step: Math.min(a.step, b.step), bin: Math.min(a.bin, b.bin) },
    until: { step: Math.max(a.step, b.step), bin: Math.max(a.bin, b.bin) },
  }
}

export function countIn({ cells }: Exploration, { from, until }: CellRange): number {
  return cells.counts.reduce((sum, count, index) => {
    const [step = 0, bin = 0] = [cells.steps[index], cells.bins[index]]
    const isIn = step >= from.step && step <= until.step && bin >= from.bin && bin <= until.bin
    return isIn ? sum + count : sum
  }, 0)
}

export function boxOfRange({ steps, stepMs, durationEdgesUs }: Exploration, { from, until }: CellRange): Box {
  const firstMs = Date.parse(steps[0]?.at ?? '')
  const end = durationEdgesUs[until.bin + 1]
  return {
    sinceMs: firstMs + from.step * stepMs,
    untilMs: firstMs + (until.step + 1) * stepMs,
    minUs: durationEdgesUs[from.bin] ?? 0,
    maxUs: end === undefined ? null : end - 1,
  }
}

/** The cells that a box touches; null: none of them is on the map. */
export function rangeOfBox({ steps, stepMs, durationEdgesUs }: Exploration, box: Box): CellRange | null {
  const firstMs = Date.parse(steps[0]?.at ?? '')
  const from = Math.max(0, Math.floor((box.sinceMs - firstMs) / stepMs))
  const until = Math.min(steps.length - 1, Math.ceil((box.untilMs - firstMs) / stepMs) - 1)
  const binAt = (us: number) =>
    Math.max(
      0,
      durationEdgesUs.findLastIndex((edge) => edge <= us),
    )
  if (from > until) return null
  return {
    from: { step: from, bin: binAt(box.minUs) },
    until: { step: until, bin: box.maxUs === null ? durationEdgesUs.length - 1 : binAt(box.maxUs) },
  }
}

/** Every so many rows have a label. @param most labels that fit */
export function labelEvery(count: number, most: number): number {
  return Math.max(1, Math.ceil(count / Math.max(1, most)))
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const labelStepsMs = [
  ...[1, 5, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 3, 6, 12].map((hours) => hours * hourMs),
  ...[1, 2, 4, 8, 16, 32].map((days) => days * dayMs),
]

/** The columns that have a label of their time, at full hours or days. @param most labels that fit */
export function timeLabels({ steps, stepMs }: Exploration, most: number): { hasDaysAlone: boolean; indexes: number[] } {
  const least = labelEvery(steps.length, most) * stepMs
  const every = labelStepsMs.find((ms) => ms >= least) ?? least
  const isFull = (at: string | undefined) => Date.parse(at ?? '') % every < stepMs
  return { hasDaysAlone: every >= dayMs, indexes: steps.flatMap(({ at }, index) => (isFull(at) ? index : [])) }
}
