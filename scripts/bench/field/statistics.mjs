import { randomNumbers } from '../../../apps/api/test/seeded/random-numbers.ts'

/** Labels are exchanged so often; the smallest probability that is found is 1 in this number. */
const exchanges = 20_000
/** Of statistics that are equal but for rounding. */
const tolerance = 1e-9
const coverageWanted = 0.95

/** Returns a function that draws whole numbers below its argument; the same seed draws the same. */
export function drawsOf(seed) {
  // The generator must not begin with 0, and small seeds begin alike.
  const below = randomNumbers((Math.imul(seed + 1, 0x9e37_79b1) ^ 0x5bd1_e995) | 1)
  for (let skipped = 0; skipped < 16; skipped++) below(2)
  return below
}

/** Returns the values in random order (Fisher and Yates). */
export function shuffled(values, below) {
  const order = [...values]
  for (let last = order.length - 1; last > 0; last--) {
    const other = below(last + 1)
    ;[order[last], order[other]] = [order[other], order[last]]
  }
  return order
}

/**
 * Returns an interval for the median of what the values are a sample of, whatever its distribution (order statistics):
 * the narrowest that covers it with 95 %; of fewer than six values the widest, with the coverage that it has.
 */
export function medianInterval(values) {
  const sorted = values.toSorted((a, b) => a - b)
  let place = 0
  while (coverageOf(sorted.length, place + 1) >= coverageWanted) place++
  const high = sorted[sorted.length - 1 - place]
  return { low: sorted[place], high, coverage: coverageOf(sorted.length, place) }
}

/** How probable it is that the median is not beyond the values that have so many before them, on either side. */
function coverageOf(count, before) {
  let missed = 0
  let ways = 1
  for (let below = 0; below <= before; below++) {
    missed += (2 * ways) / 2 ** count
    ways = (ways * (count - below)) / (below + 1)
  }
  return 1 - missed
}

/**
 * Returns how probable it is that two groups without a difference differ as much in their ranks as these, in either
 * direction: Wilcoxon's rank sum, added over strata (as van Elteren does), whose labels are exchanged at random within
 * each stratum. It assumes nothing about the distributions and takes ties.
 * @param {{ one: number[], other: number[] }[]} strata
 * @param {number} seed
 */
export function rankTest(strata, seed) {
  const below = drawsOf(seed)
  const ranked = strata.map(({ one, other }) => ({ ranks: ranksOf([...one, ...other]), count: one.length }))
  const observed = Math.abs(sumOf(ranked.map(({ ranks, count }) => distance(ranks, count))))
  let asFar = 0
  for (let exchange = 0; exchange < exchanges; exchange++) {
    const drawn = sumOf(ranked.map(({ ranks, count }) => distance(shuffled(ranks, below), count)))
    if (Math.abs(drawn) >= observed - tolerance) asFar++
  }
  return (1 + asFar) / (1 + exchanges)
}

/** How far the sum of the first `count` ranks is from what it is without a difference, over the size of the stratum. */
function distance(ranks, count) {
  const expected = (count * (ranks.length + 1)) / 2
  return (sumOf(ranks.slice(0, count)) - expected) / (ranks.length + 1)
}

/** Equal values share the mean of their ranks. */
function ranksOf(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return values.map((value) => (sorted.indexOf(value) + sorted.lastIndexOf(value)) / 2 + 1)
}

/** The smallest probability that `rankTest` can find for two groups of this size, in one stratum. */
export function smallestProbability(size) {
  let ways = 1
  for (let index = 1; index <= size; index++) ways = (ways * (size + index)) / index
  return 2 / ways
}

/**
 * Returns the probabilities as they are for all comparisons together (Holm): the smallest one times their number, the
 * next one times one fewer, and so on; none is smaller than the one before it, or above 1.
 */
export function corrected(probabilities) {
  const order = probabilities.map((value, index) => ({ value, index })).toSorted((a, b) => a.value - b.value)
  const result = []
  let largest = 0
  for (const [place, { value, index }] of order.entries()) {
    largest = Math.max(largest, Math.min(1, value * (order.length - place)))
    result[index] = largest
  }
  return result
}

const sumOf = (values) => values.reduce((sum, value) => sum + value, 0)
