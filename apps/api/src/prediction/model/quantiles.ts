/** @param sorted ascending, at least one @param part 0 to 1; the smallest value that this part is at most */
export function quantile(sorted: ArrayLike<number>, part: number): number {
  const place = Math.ceil(sorted.length * part) - 1
  return sorted[Math.max(0, Math.min(sorted.length - 1, place))] ?? Number.NaN
}

export function median(values: Iterable<number>): number {
  return quantile(Float64Array.from(values).sort(), 0.5)
}

export function mean(values: ArrayLike<number>): number {
  let sum = 0
  for (let index = 0; index < values.length; index += 1) sum += values[index] ?? 0
  return sum / values.length
}
