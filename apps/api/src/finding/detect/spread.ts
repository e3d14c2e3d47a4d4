/** Robust figures of boot times: half of the boots may be arbitrarily wrong without moving them far. */

/** Makes the median distance from the median the standard deviation of a normal distribution. */
const normalSpread = 1.4826
/** Times are at most this many spreads from the median when blocks of them are averaged. */
const clippedSpreads = 2.5
const blockSize = 64
const blocksMin = 4

export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

export interface Spread {
  center: number
  /** At least 1: times are whole numbers. */
  spread: number
}

export function spreadOf(values: readonly number[]): Spread {
  const center = medianOf(values)
  return { center, spread: Math.max(1, normalSpread * medianOf(values.map((value) => Math.abs(value - center)))) }
}

/**
 * Returns how far times, oldest first, drift by themselves: the deviation of the means of consecutive blocks, as far as
 * it is larger than chance explains. 0 while there are too few.
 */
export function driftOf(times: readonly number[], { center, spread }: Spread): number {
  const blocks = Math.floor(times.length / blockSize)
  if (blocks < blocksMin) return 0
  const clipped = times
    .slice(times.length - blocks * blockSize)
    .map((time) => Math.max(-clippedSpreads, Math.min(clippedSpreads, (time - center) / spread)))
  const means = Array.from({ length: blocks }, (_, block) =>
    meanOf(clipped.slice(block * blockSize, (block + 1) * blockSize)),
  )
  const within = varianceOf(clipped.map((value, index) => value - (means[Math.floor(index / blockSize)] ?? 0)))
  // Chance alone exceeds it once in about ten times.
  const byChance = (within / blockSize) * (1 + 1.3 * Math.sqrt(2 / (blocks - 1)))
  return spread * Math.sqrt(Math.max(0, varianceOf(means) - byChance))
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function varianceOf(values: readonly number[]): number {
  const mean = meanOf(values)
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)
}
