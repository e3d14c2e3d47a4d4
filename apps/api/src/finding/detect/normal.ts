/** The standard normal distribution, to about 1e-9 (Abramowitz and Stegun, 26.2). */

const density = (x: number) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)
/** Below it the series needs few terms, above it the continued fraction does. */
const seriesMax = 3
const fractionLevels = 60

/** Returns the probability of a value above x, for x of at least 0. */
function upperTail(x: number): number {
  if (x > seriesMax) {
    let fraction = x
    for (let level = fractionLevels; level > 0; level -= 1) fraction = x + level / fraction
    return density(x) / fraction
  }
  let term = x
  let sum = x
  for (let odd = 3; Math.abs(term) > 1e-17; odd += 2) {
    term *= (x * x) / odd
    sum += term
  }
  return 0.5 - density(x) * sum
}

/** Returns the probability of a value below x. */
export function normalCdf(x: number): number {
  return x < 0 ? upperTail(-x) : 1 - upperTail(x)
}

/** Returns the value below which a share of all values lies; `share` is above 0 and below 1. */
export function normalQuantile(share: number): number {
  if (share > 0.5) return -normalQuantile(1 - share)
  // 26.2.23 is right to 4.5e-4; one step of Halley's method makes it exact enough.
  const t = Math.sqrt(-2 * Math.log(share))
  const numerator = 2.515517 + t * (0.802853 + t * 0.010328)
  const x = numerator / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
  const error = (normalCdf(x) - share) / density(x)
  return x - error / (1 + (x * error) / 2)
}
