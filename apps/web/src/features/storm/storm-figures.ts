import { elapsedMsOf, isBooting, type Storm, type StormCell, type StormState } from './storm-model.ts'

/** What a storm's cells add up to. Times are milliseconds of the API's clock. */

export function countStates(cells: StormCell[]): Map<StormState, number> {
  const counts = new Map<StormState, number>()
  for (const { state } of cells) counts.set(state, (counts.get(state) ?? 0) + 1)
  return counts
}

export interface StormTotals {
  /** Devices with a boot in the time, or that are to have one. */
  devices: number
  booting: number
  queued: number
  ready: number
  /** Failed and timed out. */
  unsuccessful: number
  noResponse: number
}

export function totalsOf(cells: StormCell[]): StormTotals {
  const counts = countStates(cells)
  const of = (state: StormState) => counts.get(state) ?? 0
  const left = of('idle') + of('skipped')
  const done = of('ready') + of('failed') + of('silent') + of('no_response') + of('local_disk') + of('superseded')
  return {
    devices: cells.length - left,
    booting: cells.length - left - done - of('queued'),
    queued: of('queued'),
    ready: of('ready'),
    unsuccessful: of('failed') + of('silent'),
    noResponse: of('no_response'),
  }
}

const rateWindowMs = 5 * 60_000
/** Fewer say nothing about a rate. */
const readyMin = 5

export type Estimate =
  /** Nothing boots, and nothing waits. */
  | { kind: 'over' }
  /** Neither a rate nor a usual time is known. */
  | { kind: 'unknown' }
  /** At the rate at which devices became ready in the last `windowMs`. */
  | { kind: 'rate'; leftMs: number; remaining: number; readyCount: number; windowMs: number }
  /** By the usual time of what the devices boot. */
  | { kind: 'usual'; leftMs: number; remaining: number }

/**
 * Estimates when the last device is ready. Devices that are slower than usual may need longer; those that fail are over
 * sooner.
 */
export function estimate(cells: StormCell[], kinds: Storm['kinds'], nowMs: number): Estimate {
  const { booting, queued } = totalsOf(cells)
  const remaining = booting + queued
  if (remaining === 0) return { kind: 'over' }
  const boots = cells.filter(isBooting)
  const usual = boots.map((cell) => usualLeftMs(cell, kinds, nowMs))
  const longest = Math.max(0, ...usual.flatMap((leftMs) => leftMs ?? []))
  const isUsualKnown = queued === 0 && boots.length === booting && usual.every((leftMs) => leftMs !== null)
  const { readyCount, windowMs } = recentlyReady(cells, nowMs)
  const isRateKnown = readyCount >= readyMin
  const byRateMs = isRateKnown ? (remaining * windowMs) / readyCount : 0
  // No boot ends before its usual time: the last ones to begin are not as quick as the rate says.
  if (isRateKnown && (queued > 0 || byRateMs >= longest))
    return { kind: 'rate', leftMs: Math.max(byRateMs, longest), remaining, readyCount, windowMs }
  return isUsualKnown || isRateKnown ? { kind: 'usual', leftMs: longest, remaining } : { kind: 'unknown' }
}

function usualLeftMs(cell: StormCell, kinds: Storm['kinds'], nowMs: number): number | null {
  const kind = kinds[cell.kind]
  if (!kind?.basis || kind.p50Ms === null) return null
  return Math.max(0, kind.p50Ms - (nowMs - cell.startedAtMs))
}

/** Ready within the last minutes, or since the first boot began, if that is shorter. */
function recentlyReady(cells: StormCell[], nowMs: number): { readyCount: number; windowMs: number } {
  const boots = cells.filter(({ bootId }) => bootId !== null)
  const fromMs = nowMs - rateWindowMs
  const ready = boots.filter((cell) => cell.state === 'ready' && readyAtMs(cell) >= fromMs)
  const firstMs = boots.reduce((first, { startedAtMs }) => Math.min(first, startedAtMs), nowMs)
  return { readyCount: ready.length, windowMs: Math.min(rateWindowMs, Math.max(1, nowMs - firstMs)) }
}

export function readyAtMs({ startedAtMs, tookMs }: StormCell): number {
  return startedAtMs + tookMs
}

const readyShownMax = 10

/** The devices that became ready first, and last, the first and the last one first. */
export function firstAndLastReady(cells: StormCell[]): { first: StormCell[]; last: StormCell[] } {
  const ready = cells.filter(({ state }) => state === 'ready').sort((a, b) => readyAtMs(a) - readyAtMs(b))
  return { first: ready.slice(0, readyShownMax), last: ready.slice(-readyShownMax).reverse() }
}

/** A boot counts as slow from this many times the median of its kind on. */
export const slowFactor = 2
export const stragglersShownMax = 10

export interface Straggler {
  cell: StormCell
  elapsedMs: number
  usualMs: number
  kind: Storm['kinds'][number]
  /** The phase in progress, if it takes longer than usual. */
  phase: { name: StormState; elapsedMs: number; usualMs: number } | null
}

/** Boots that take, or took, much longer than those of their kind; the slowest in proportion first. */
export function stragglersOf(cells: StormCell[], kinds: Storm['kinds'], nowMs: number): Straggler[] {
  return cells
    .flatMap((cell) => straggler(cell, kinds, nowMs) ?? [])
    .sort((a, b) => b.elapsedMs / b.usualMs - a.elapsedMs / a.usualMs)
}

function straggler(cell: StormCell, kinds: Storm['kinds'], nowMs: number): Straggler | null {
  const kind = kinds[cell.kind]
  const elapsedMs = elapsedMsOf(cell, nowMs)
  const usualMs = kind?.p50Ms ?? 0
  if (!kind?.basis || elapsedMs === null || usualMs === 0 || elapsedMs <= slowFactor * usualMs) return null
  if (isBooting(cell)) return { cell, elapsedMs, usualMs, kind, phase: slowPhase(cell, kind, nowMs) }
  return cell.state === 'ready' ? { cell, elapsedMs, usualMs, kind, phase: null } : null
}

function slowPhase(cell: StormCell, kind: Storm['kinds'][number], nowMs: number): Straggler['phase'] {
  const elapsedMs = nowMs - cell.startedAtMs - cell.phaseMs
  const usualMs = kind.phaseP50Ms[cell.state]
  return usualMs !== undefined && elapsedMs > usualMs ? { name: cell.state, elapsedMs, usualMs } : null
}
