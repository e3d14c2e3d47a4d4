const z95 = 1.96

/**
 * Returns the pseudo-median of values and its 95 % interval: the means of all pairs of values, and the ranks at which
 * Wilcoxon's signed-rank test would just not refuse (Hodges and Lehmann 1963; its normal approximation, from about ten
 * values on).
 * @param {number[]} values
 * @returns {{ median: number, low: number, high: number }}
 */
export function medianWithInterval(values) {
  const means = values.flatMap((value, index) => values.slice(index).map((other) => (value + other) / 2))
  means.sort((a, b) => a - b)
  const count = values.length
  const spread = z95 * Math.sqrt((count * (count + 1) * (2 * count + 1)) / 24)
  const first = Math.max(0, Math.floor(means.length / 2 - spread))
  const middle = (means.length - 1) / 2
  return {
    median: (means[Math.floor(middle)] + means[Math.ceil(middle)]) / 2,
    low: means[first],
    high: means[means.length - 1 - first],
  }
}
