import { normalQuantile } from '../explore/public.ts'

/**
 * The difference of two cells from pairs of boots, without an assumption on the distribution of boot times: each pair
 * is one device in one repetition, so that what differs between devices and from hour to hour is no part of it. The
 * estimate is the median of the pairs' mean differences (Hodges and Lehmann 1963), the interval comes from the
 * signed-rank test (Wilcoxon 1945; Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", section 3). Pure.
 */

export interface PairedDifference {
  /** Second less first. */
  difference: number
  /** The interval holds the true difference of all cells together 19 times of 20. */
  low: number
  high: number
  /** The interval does not hold 0. */
  isClear: boolean
  /** How often chance alone makes a difference as large, times the number of compared cells; at most 1. */
  chance: number
}

const errorShare = 0.05
/** Ranks of more pairs are as normal as they will be. */
const exactMax = 60

/**
 * Null if there are too few pairs for an interval at all. @param differences of the pairs, second less first
 * @param comparedCount the number of cells that are judged together; the interval allows for as many (Bonferroni)
 */
export function pairedDifference(differences: number[], comparedCount: number): PairedDifference | null {
  const count = differences.length
  const share = errorShare / 2 / comparedCount
  const outside = criticalRank(count, share)
  if (outside === null) return null
  const walsh = walshAverages(differences)
  const middle = (walsh.length - 1) / 2
  const difference = ((walsh[Math.floor(middle)] ?? 0) + (walsh[Math.ceil(middle)] ?? 0)) / 2
  const low = walsh[outside] ?? 0
  const high = walsh[walsh.length - 1 - outside] ?? 0
  const isClear = low > 0 || high < 0
  return { difference, low, high, isClear, chance: Math.min(1, chanceOf(differences) * comparedCount) }
}

/** The fewest pairs that have an interval for so many compared cells. */
export function pairsNeeded(comparedCount: number): number {
  let count = 1
  while (criticalRank(count, errorShare / 2 / comparedCount) === null) count += 1
  return count
}

/**
 * The smallest difference that so many pairs show in four of five experiments, for pairs that spread like these: the
 * signed-rank test needs 3/π more pairs than the t-test. Null for fewer than two pairs.
 */
export function smallestShown(differences: number[], comparedCount: number): number | null {
  if (differences.length < 2) return null
  const centre = middleOf(differences.toSorted((a, b) => a - b))
  const spread = 1.4826 * middleOf(differences.map((value) => Math.abs(value - centre)).toSorted((a, b) => a - b))
  const z = normalQuantile(1 - errorShare / 2 / comparedCount) + normalQuantile(0.8)
  return (z * spread * Math.sqrt(Math.PI / 3)) / Math.sqrt(differences.length)
}

function middleOf(sorted: number[]): number {
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2
}

/** The means of all pairs of values, each value with itself, too; ascending. */
function walshAverages(values: number[]): Float64Array {
  const averages = new Float64Array((values.length * (values.length + 1)) / 2)
  let at = 0
  for (const [index, one] of values.entries())
    for (let other = index; other < values.length; other += 1) {
      averages[at] = (one + (values[other] ?? 0)) / 2
      at += 1
    }
  return averages.sort()
}

/** As many Walsh averages at each end are outside of the interval; null: even with none it errs more often. */
function criticalRank(count: number, share: number): number | null {
  if (count === 0) return null
  if (count > exactMax) {
    const mean = (count * (count + 1)) / 4
    const deviation = Math.sqrt((count * (count + 1) * (2 * count + 1)) / 24)
    return Math.max(0, Math.floor(mean + normalQuantile(share) * deviation - 0.5))
  }
  const shares = rankSums(count)
  let below = shares[0] ?? 0
  if (below > share) return null
  let rank = 0
  while (below + (shares[rank + 1] ?? 0) <= share) {
    rank += 1
    below += shares[rank] ?? 0
  }
  return rank
}

/** Share of each sum of the ranks 1 to `count`, if each is counted or not by the toss of a coin. */
function rankSums(count: number): Float64Array {
  const shares = new Float64Array((count * (count + 1)) / 2 + 1)
  shares[0] = 1
  for (let rank = 1; rank <= count; rank += 1)
    for (let sum = (rank * (rank + 1)) / 2; sum >= 0; sum -= 1)
      shares[sum] = ((shares[sum] ?? 0) + (sum >= rank ? (shares[sum - rank] ?? 0) : 0)) / 2
  return shares
}

/** Two-sided, from the sum of the ranks of positive differences; ties share their ranks. */
function chanceOf(differences: number[]): number {
  const values = differences.filter((value) => value !== 0).toSorted((a, b) => Math.abs(a) - Math.abs(b))
  const count = values.length
  if (count === 0) return 1
  let positive = 0
  for (let from = 0; from < count; ) {
    let to = from + 1
    while (to < count && Math.abs(values[to] ?? 0) === Math.abs(values[from] ?? 0)) to += 1
    const rank = (from + 1 + to) / 2
    for (let index = from; index < to; index += 1) if ((values[index] ?? 0) > 0) positive += rank
    from = to
  }
  const whole = (count * (count + 1)) / 2
  const least = Math.min(positive, whole - positive)
  if (count > exactMax) {
    const deviation = Math.sqrt((count * (count + 1) * (2 * count + 1)) / 24)
    return Math.min(1, 2 * normalBelow((least + 0.5 - whole / 2) / deviation))
  }
  const shares = rankSums(count)
  let below = 0
  for (let sum = 0; sum <= least; sum += 1) below += shares[sum] ?? 0
  return Math.min(1, 2 * below)
}

/** The share of the standard normal distribution below `z`, at most 0: the inverse of the quantile, by halving. */
function normalBelow(z: number): number {
  let [low, high] = [1e-9, 0.5]
  for (let step = 0; step < 50; step += 1) {
    const middle = Math.sqrt(low * high)
    if (normalQuantile(middle) < z) low = middle
    else high = middle
  }
  return high
}
