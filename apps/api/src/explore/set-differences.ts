import { normalQuantile } from './normal-quantile.ts'

/** How two sets of boots differ, and how sure that is: pure. */

/** Second less first, with the interval that holds the true difference 19 times of 20. */
export interface Difference {
  difference: number
  low: number
  high: number
  /** The interval does not hold 0. */
  isClear: boolean
}

const errorShare = 0.05
/** Ranks of fewer values say nothing of a median. */
export const medianMin = 10

interface Compared {
  /** The number of differences that are judged together; the intervals allow for as many (Bonferroni). */
  comparedCount: number
}

/** Null for an empty set. @param sorted ascending */
export function medianOf(sorted: number[]): number | null {
  const middle = sorted.length / 2
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return low === undefined || high === undefined ? null : (low + high) / 2
}

/**
 * The difference of two medians, without an assumption on the distributions: the error of each median comes from two
 * order statistics around it (Price and Bonett 2002). Null if a set has fewer than `medianMin` values. Both ascending.
 */
export function medianDifference(first: number[], second: number[], { comparedCount }: Compared): Difference | null {
  const medians = [medianOf(first), medianOf(second)]
  const [before, after] = medians
  if (before == null || after == null || Math.min(first.length, second.length) < medianMin) return null
  const z = normalQuantile(1 - errorShare / 2 / comparedCount)
  const half = z * Math.hypot(medianError(first), medianError(second))
  return differenceOf(after - before, { low: after - before - half, high: after - before + half })
}

/** The standard error of a median: the distance of the c-th values from both ends, over that in standard errors. */
function medianError(sorted: number[]): number {
  const count = sorted.length
  const c = Math.max(1, Math.round((count + 1) / 2 - Math.sqrt(count)))
  // As many of `count` values are below the median as a fair coin has heads: the normal distribution, with the
  // correction for continuity.
  const z = (count / 2 - c + 0.5) / (Math.sqrt(count) / 2)
  return ((sorted[count - c] ?? 0) - (sorted[c - 1] ?? 0)) / (2 * z)
}

export interface Part {
  count: number
  of: number
}

/** The difference of two shares (Newcombe 1998, from the score intervals of Wilson). Null if a set is empty. */
export function shareDifference(first: Part, second: Part, { comparedCount }: Compared): Difference | null {
  if (first.of === 0 || second.of === 0) return null
  const z = normalQuantile(1 - errorShare / 2 / comparedCount)
  const [before, after] = [wilson(first, z), wilson(second, z)]
  const difference = after.share - before.share
  return differenceOf(difference, {
    low: difference - Math.hypot(after.share - after.low, before.high - before.share),
    high: difference + Math.hypot(after.high - after.share, before.share - before.low),
  })
}

function wilson({ count, of }: Part, z: number): { share: number; low: number; high: number } {
  const share = count / of
  const middle = share + z ** 2 / (2 * of)
  const half = z * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2))
  const whole = 1 + z ** 2 / of
  return { share, low: (middle - half) / whole, high: (middle + half) / whole }
}

function differenceOf(difference: number, { low, high }: { low: number; high: number }): Difference {
  return { difference, low, high, isClear: low > 0 || high < 0 }
}
