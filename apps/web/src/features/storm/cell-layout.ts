/** Where the cells of a storm are. Lengths are CSS pixels. */

export interface CellLayout {
  /** Side of a cell. */
  size: number
  /** From one cell to the next. */
  pitch: number
  columns: number
  rows: number
  height: number
}

const sizeMin = 7
const sizeMax = 44
/** Cells of up to this size have the smaller gap. */
const smallSize = 12

/** The largest cells that fit; where even the smallest do not, the map is higher than asked. */
export function layOutCells(count: number, { width, height }: { width: number; height: number }): CellLayout {
  for (let size = sizeMax; size > sizeMin; size -= 1) {
    const layout = layoutOf(count, width, size)
    if (layout.height <= height) return layout
  }
  return layoutOf(count, width, sizeMin)
}

function layoutOf(count: number, width: number, size: number): CellLayout {
  const gap = size <= smallSize ? 1 : 3
  const pitch = size + gap
  const columns = Math.max(1, Math.min(Math.max(1, count), Math.floor((width + gap) / pitch)))
  const rows = Math.ceil(count / columns)
  return { size, pitch, columns, rows, height: Math.max(0, rows * pitch - gap) }
}

export function cellPlace({ columns, pitch }: CellLayout, index: number): { x: number; y: number } {
  return { x: (index % columns) * pitch, y: Math.floor(index / columns) * pitch }
}

/** The cell at a point, gaps included; null beside them. */
export function cellAt(
  { columns, pitch }: CellLayout,
  count: number,
  { x, y }: { x: number; y: number },
): number | null {
  const column = Math.floor(x / pitch)
  if (x < 0 || y < 0 || column >= columns) return null
  const index = Math.floor(y / pitch) * columns + column
  return index < count ? index : null
}

/** Where a key leads from a cell; null for keys that lead nowhere. */
export function cellAfterKey(
  { columns }: CellLayout,
  count: number,
  from: { index: number; key: string },
): number | null {
  const steps: Record<string, number> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
    PageUp: -10 * columns,
    PageDown: 10 * columns,
    Home: -count,
    End: count,
  }
  const step = steps[from.key]
  if (step === undefined) return null
  const isRowStep = from.key === 'ArrowUp' || from.key === 'ArrowDown'
  const next = from.index + step
  if (isRowStep && (next < 0 || next >= count)) return from.index
  return Math.min(count - 1, Math.max(0, next))
}
