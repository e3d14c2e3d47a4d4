/**
 * When the store of an edge becomes full, from samples of its free space. Pure. Docs: docs/decisions/0073.
 */

export interface SpaceSample {
  at: Date
  freeBytes: number
}

export interface Space {
  freeBytes: number
  totalBytes: number
}

const dayMs = 86_400_000
/** Samples of earlier days say little about the next ones. */
export const forecastFromDays = 30
/** Below these a line through them would be a guess. */
const samplesMin = 8
const spanMinDays = 2
/** A store that takes longer is not filling. */
const daysMax = 3_650

/**
 * Returns what the edge leaves free: 2 GiB or 5 %, whichever is more, but not more than a quarter of a small disk.
 * Below it write caches take no new blocks (host/files/disk_watch.zig).
 */
export function reserveOf(totalBytes: number): number {
  return Math.min(Math.max(2 * 1024 ** 3, totalBytes / 20), totalBytes / 4)
}

/** What versions and write caches can still take. */
export function usableBytes({ freeBytes, totalBytes }: Space): number {
  return Math.max(0, Math.floor(freeBytes - reserveOf(totalBytes)))
}

/**
 * Returns the median of the slopes between all pairs of samples (Theil and Sen), in bytes a day: a single large import,
 * or a cleaning, does not turn it. Null: there are too few samples, or of too short a time.
 */
export function trendOf(samples: readonly SpaceSample[], now: Date): number | null {
  const from = now.getTime() - forecastFromDays * dayMs
  const used = samples.filter(({ at }) => at.getTime() >= from).sort((a, b) => a.at.getTime() - b.at.getTime())
  const [first, last] = [used[0], used.at(-1)]
  if (!first || !last || used.length < samplesMin) return null
  if (last.at.getTime() - first.at.getTime() < spanMinDays * dayMs) return null
  const slopes: number[] = []
  for (const [index, left] of used.entries())
    for (const right of used.slice(index + 1)) {
      const days = (right.at.getTime() - left.at.getTime()) / dayMs
      if (days > 0) slopes.push((right.freeBytes - left.freeBytes) / days)
    }
  return slopes.length === 0 ? null : Math.round(medianOf(slopes))
}

function medianOf(values: number[]): number {
  const sorted = values.sort((a, b) => a - b)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? 0
  return Number.isInteger(middle) ? (upper + (sorted[middle - 1] ?? 0)) / 2 : upper
}

/** Returns in how many days nothing more fits; null: not within ten years. */
export function daysUntilFull(space: Space, bytesPerDay: number | null): number | null {
  const usable = usableBytes(space)
  if (usable === 0) return 0
  if (bytesPerDay === null || bytesPerDay >= 0) return null
  const days = usable / -bytesPerDay
  return days > daysMax ? null : days
}

export type SpaceWarning = 'full' | 'filling' | 'next_version'

const warningDays = 7
/** A warning ends only when it is clearly over, so that it does not come every day. */
const endedDays = 10

/**
 * Returns why people are warned; null: nothing is to be feared.
 * @param pendingBytes what versions need that the edge is to hold and lacks
 * @param isTold the warning stands already
 */
export function warningOf(
  space: Space,
  { days, pendingBytes, isTold }: { days: number | null; pendingBytes: number; isTold: boolean },
): SpaceWarning | null {
  const usable = usableBytes(space)
  if (usable === 0) return 'full'
  if (pendingBytes > usable) return 'next_version'
  return days !== null && days < (isTold ? endedDays : warningDays) ? 'filling' : null
}
