import { normalQuantile } from './normal-quantile.ts'

/** Which values of attributes are more frequent among some boots than among the rest: pure. */

/** How often a value occurs in each of two sets. */
export interface ValueCount {
  attribute: string
  value: string | null
  inside: number
  outside: number
}

export type RankedValue<Counted extends ValueCount> = Counted & {
  /** Odds of the value inside over those outside. */
  oddsRatio: number
  /** The interval of the odds ratio, at 95 % for all compared values together. */
  low: number
  high: number
  /** The interval is above 1: the value is more frequent inside, beyond chance. */
  isClear: boolean
}

const errorShare = 0.05
/** A value of fewer boots proves nothing, and would widen every interval. */
const countMin = 5

/**
 * Ranks the values that are more frequent inside, by the least odds ratio that the counts allow. Intervals are those of
 * the log odds ratio (Woolf, with half a boot added to each count, after Haldane and Anscombe), at 5 % divided by the
 * number of compared values (Bonferroni): one in twenty rankings of equal sets has any value that is clear.
 */
export function rankValues<Counted extends ValueCount>(
  counts: Counted[],
  { inside, outside }: { inside: number; outside: number },
): { values: RankedValue<Counted>[]; comparedCount: number } {
  const compared = counts.filter((count) => count.inside + count.outside >= countMin)
  const z = normalQuantile(1 - errorShare / 2 / Math.max(1, compared.length))
  const values = compared
    .map((count) => {
      const cells = [count.inside, inside - count.inside, count.outside, outside - count.outside].map((n) => n + 0.5)
      const [a = 1, b = 1, c = 1, d = 1] = cells
      const log = Math.log((a * d) / (b * c))
      const error = Math.sqrt(cells.reduce((sum, cell) => sum + 1 / cell, 0))
      const low = Math.exp(log - z * error)
      return { ...count, oddsRatio: Math.exp(log), low, high: Math.exp(log + z * error), isClear: low > 1 }
    })
    .filter(({ oddsRatio, inside: here }) => oddsRatio > 1 && here > 0)
    .sort((a, b) => b.low - a.low)
  return { values, comparedCount: compared.length }
}
