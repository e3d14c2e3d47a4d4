import { formatDuration } from '../../lib/format-quantity.ts'
import { formatInstant } from '../../lib/format-time.ts'
import { countText } from './count-text.ts'
import type { Box } from './explore-inputs'
import { boxOfRange, type Cell, type CellRange, countIn, type Exploration } from './heat-layout.ts'

/** `18 Nov 14:00 to 17:00, 30 s to 45 s: 12 boots`. */
export function rangeText(exploration: Exploration, range: CellRange): string {
  return boxText(boxOfRange(exploration, range), countText(countIn(exploration, range), exploration.sample.share))
}

export function cellText(exploration: Exploration, cell: Cell, countAt: (cell: Cell) => number): string {
  const box = boxOfRange(exploration, { from: cell, until: cell })
  return boxText(box, countText(countAt(cell), exploration.sample.share))
}

export function boxText({ sinceMs, untilMs, minUs, maxUs }: Box, count: string): string {
  const now = new Date()
  const time = `${formatInstant(new Date(sinceMs), now)} to ${formatInstant(new Date(untilMs), now)}`
  const duration =
    maxUs === null ? `${formatDuration(minUs)} or longer` : `${formatDuration(minUs)} to ${formatDuration(maxUs + 1)}`
  return `${time} · ${duration} · ${count} ${count === '1' ? 'boot' : 'boots'}`
}
