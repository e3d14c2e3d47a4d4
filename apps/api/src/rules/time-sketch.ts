/**
 * Times by bucket: how many fell into each. A bucket is at most 1/32 of its times wide, so a quantile read from it is
 * right within 1.6 %; sketches are added and taken from each other exactly. Whole numbers alone, so that SQL counts
 * them alike.
 */
export type TimeSketch = Record<string, number>

const bucketsPerDoubling = 32
/** Some 12 days: longer times count as this. */
export const sketchedUsMax = 2 ** 40 - 1

export function bucketOf(us: number): number {
  let mantissa = Math.min(Math.max(us, 0), sketchedUsMax)
  let doublings = 0
  while (mantissa >= 2 * bucketsPerDoubling) {
    mantissa = Math.floor(mantissa / 2)
    doublings += 1
  }
  return doublings * bucketsPerDoubling + mantissa
}

function middleOf(bucket: number): number {
  if (bucket < 2 * bucketsPerDoubling) return bucket
  const doublings = Math.floor(bucket / bucketsPerDoubling) - 1
  const width = 2 ** doublings
  return (bucket - doublings * bucketsPerDoubling) * width + Math.floor(width / 2)
}

/** `into` is changed; a bucket that is empty again is not kept. */
export function addToSketch(into: TimeSketch, bucket: number | string, count: number): void {
  const sum = (into[bucket] ?? 0) + count
  if (sum === 0) delete into[bucket]
  else into[bucket] = sum
}

/** @param share of the times that are at most the answer, 0 to 1; null where there are none */
export function quantileOf(sketch: TimeSketch, share: number): number | null {
  const buckets = Object.entries(sketch)
    .map(([bucket, count]) => ({ bucket: Number(bucket), count }))
    .sort((a, b) => a.bucket - b.bucket)
  const total = buckets.reduce((sum, { count }) => sum + count, 0)
  let below = 0
  for (const { bucket, count } of buckets) {
    below += count
    if (below >= share * total) return middleOf(bucket)
  }
  return null
}
