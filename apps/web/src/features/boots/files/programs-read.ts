import { formatBytes, formatDuration } from '../../../lib/format-quantity'
import type { FilesRead } from './files-read'

export type ProgramRead = FilesRead['programs'][number]
export type UnitRead = FilesRead['units'][number]
export type UnitStart = FilesRead['slowestUnits'][number]

/** A shorter wait is not worth a change. */
const gainMinUs = 50_000

/**
 * What would help this boot most: the program whose cold reads alone held it up longest. Null where none did.
 */
export function adviceOf({ programs }: Pick<FilesRead, 'programs'>): string | null {
  const most = programs.reduce<ProgramRead | null>(
    (first, program) => (program.gainUs > (first?.gainUs ?? 0) ? program : first),
    null,
  )
  if (!most || most.gainUs < gainMinUs) return null
  const reads = `${nameOf(most)} reads ${formatBytes(most.coldBytes)} cold`
  const profile =
    most.aheadBytes === 0
      ? 'It is not in the boot profile'
      : `The boot profile has ${formatBytes(most.aheadBytes)} of it`
  const gain = formatDuration(most.gainUs)
  return `${reads}: ${gain}. ${profile}. With it in the edge’s memory, the boot would be ${gain} faster.`
}

function nameOf({ name, unit }: ProgramRead): string {
  const program = name === '' ? 'A program without a name' : name
  return isUnit(unit) ? `${program} (${unit})` : program
}

/** `(kernel)`, `(initramfs)` and the like are none. */
export function isUnit(unit: string): boolean {
  return unit !== '' && !unit.startsWith('(')
}

/** Why no program is listed; null where some are. */
export function traceProblem({ trace }: Pick<FilesRead, 'trace'>): string | null {
  if (!trace) return null
  if (trace.state === 'no_tracing')
    return 'The device’s kernel lets nobody trace it (no tracefs, or it is locked), so programs are not known.'
  if (trace.state === 'no_event')
    return 'The device’s kernel has no event for requests to a disk, so programs are not known.'
  return null
}

type Value = string | number

/** @param order a field, with a hyphen from the largest */
export function sortReads<Row extends ProgramRead | UnitRead | UnitStart>(rows: Row[], order: string): Row[] {
  const isLargestFirst = order.startsWith('-')
  const field = (isLargestFirst ? order.slice(1) : order) as keyof Row
  const compare = (a: Row, b: Row) => compareValues(a[field] as Value, b[field] as Value)
  return rows.toSorted((a, b) => (isLargestFirst ? compare(b, a) : compare(a, b)))
}

function compareValues(a: Value, b: Value): number {
  return typeof a === 'string' || typeof b === 'string' ? String(a).localeCompare(String(b)) : a - b
}
