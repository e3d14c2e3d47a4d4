import { formatBytes } from '../../../lib/format-quantity'
import type { RouterOutputs } from '../../../lib/trpc'

export type FilesRead = NonNullable<RouterOutputs['boot']['filesRead']>
export type FileRead = FilesRead['files'][number]

/** A cell of the map of the disk; without READs its bytes are 0. */
export interface DiskCell {
  index: number
  /** Of the cell that was read, from 0 to 1. */
  share: number
  /** From 0, the first READ of the boot, to 1, the cell that was read last for the first time. */
  when: number
  text: string
}

/** The cells of the disk that were read, in the disk's order. */
export function diskCells({ cells, cellBytes }: Pick<FilesRead, 'cells' | 'cellBytes'>): DiskCell[] {
  const times = cells.map(({ firstUs }) => firstUs)
  const [first, last] = [Math.min(...times), Math.max(...times)]
  return cells.map(({ index, bytes, firstUs }) => ({
    index,
    // A cell that is read twice counts twice.
    share: Math.min(1, bytes / cellBytes),
    when: last === first ? 0 : (firstUs - first) / (last - first),
    text: `${formatBytes(index * cellBytes)} to ${formatBytes((index + 1) * cellBytes)}: ${formatBytes(bytes)} read, first ${(firstUs / 1_000_000).toFixed(1)}\u00a0s after the start`,
  }))
}

/** @param share of bytes, from 0 to 1; whole percent, and never 100 for less than all */
export function percentOf(share: number): string {
  const percent = share === 1 ? 100 : Math.min(99, Math.round(share * 100))
  return `${percent}\u00a0%`
}

const values = {
  storageUs: (file: FileRead) => file.storageUs,
  bytes: (file: FileRead) => file.bytes,
  reads: (file: FileRead) => file.reads,
  coldReads: (file: FileRead) => file.coldReads,
  firstUs: (file: FileRead) => file.firstUs,
}

/** @param order a field, with a hyphen from the largest; `name` sorts by name */
export function sortFiles(files: FileRead[], order: string): FileRead[] {
  const isLargestFirst = order.startsWith('-')
  const field = isLargestFirst ? order.slice(1) : order
  const value = values[field as keyof typeof values]
  const compare = value
    ? (a: FileRead, b: FileRead) => value(a) - value(b)
    : (a: FileRead, b: FileRead) => a.name.localeCompare(b.name)
  return files.toSorted((a, b) => (isLargestFirst ? compare(b, a) : compare(a, b)))
}
