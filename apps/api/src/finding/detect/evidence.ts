import { normalQuantile } from './normal.ts'

/**
 * How much boots have to be slower, or fail, before it is no chance: with limits that hold at any time, so that it does
 * no harm to look after every boot.
 */

/**
 * Returns the normal score of a value among those before it. As long as all of them have the same distribution,
 * whatever it is, scores are independent, and no heavier in their tails than the standard normal one: ranks do not
 * know how far away an outlier is. Equal values count as larger, which makes the score smaller.
 */
export function scoreAmong(before: readonly number[], value: number): number {
  let rank = 1
  for (const other of before) if (other < value) rank += 1
  return normalQuantile(rank / (before.length + 2))
}

/** How far the first sum above a limit is above it on average, in spreads (Siegmund, "Sequential analysis", 1985). */
const overshoot = 0.583

/**
 * Returns the limit that the sum of scores exceeds, after any of the first `boots` boots, with a probability of `risk`:
 * the largest sum exceeds a limit twice as often as the last one (reflection). A constant limit is the shape of O'Brien
 * and Fleming (1979): out of reach of a few boots, and for all of them hardly higher than that of a single look.
 */
export function slowerLimit(boots: number, risk: number): number {
  return -normalQuantile(risk / 2) * Math.sqrt(boots) - overshoot
}

interface Failing {
  failures: number
  count: number
}

/** Odds of a failure with the cause, in multiples of those without it. */
const oddsRatios = [2, 4, 8, 16, 32]
/** Logarithms of odds without the cause: probabilities from 0.03 % to 98 %. */
const oddsFrom = -8
const oddsStep = 0.2
const oddsCount = 61

/**
 * Returns the logarithm of the evidence that boots fail more often than those before: how much better higher odds
 * explain them (averaged over the ratios), averaged over the probabilities without the cause that the boots before
 * leave (Jeffreys' prior). Such a ratio exceeds c at any time with a probability of at most 1/c (Ville's inequality).
 */
export function failingEvidence({ failures, count }: Failing, before: Failing): number {
  const same: number[] = []
  const higher: number[] = []
  for (let index = 0; index < oddsCount; index += 1) {
    const odds = oddsFrom + oddsStep * index
    const known = likelihood(before.failures + 0.5, before.count + 1, odds)
    same.push(known + likelihood(failures, count, odds) + Math.log(oddsRatios.length))
    for (const ratio of oddsRatios) higher.push(known + likelihood(failures, count, odds + Math.log(ratio)))
  }
  return sumOfLogs(higher) - sumOfLogs(same)
}

/** @param odds the logarithm of the odds of a failure */
function likelihood(failures: number, count: number, odds: number): number {
  return failures * odds - count * Math.log1p(Math.exp(odds))
}

function sumOfLogs(logs: number[]): number {
  const highest = Math.max(...logs)
  return highest + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - highest), 0))
}
