/** How fast an upload advances, over the last seconds. */

const windowMs = 15_000
/** Less says nothing yet. */
const shownAfterMs = 1500
const samplesMax = 64

export interface RateSample {
  atMs: number
  offset: number
}

/** Adds what is known now, and forgets what is old; one sample older than the window stays for its beginning. */
export function withSample(samples: readonly RateSample[], sample: RateSample): RateSample[] {
  const isNeeded = (_: RateSample, index: number) => (samples[index + 1]?.atMs ?? sample.atMs) > sample.atMs - windowMs
  return [...samples.filter(isNeeded), sample].slice(-samplesMax)
}

/** Bytes a second; null while too little is known, or where nothing arrived. */
export function rateOf(samples: readonly RateSample[]): number | null {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last) return null
  const [ms, bytes] = [last.atMs - first.atMs, last.offset - first.offset]
  return ms < shownAfterMs || bytes <= 0 ? null : (bytes * 1000) / ms
}
