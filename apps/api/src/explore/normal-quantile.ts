/** The quantile of the standard normal distribution, by halving. @param p between 1e-9 and 1 - 1e-9 */
export function normalQuantile(p: number): number {
  let [low, high] = [-8, 8]
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2
    if (normalShare(middle) < p) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/** The share of the standard normal distribution below `x`: 1/2 + density(x) * (x + x^3/3 + x^5/(3*5) + …). */
function normalShare(x: number): number {
  let term = x
  let sum = x
  for (let odd = 3; Math.abs(term) > Math.abs(sum) * Number.EPSILON; odd += 2) {
    term *= (x * x) / odd
    sum += term
  }
  return 0.5 + (Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)) * sum
}
