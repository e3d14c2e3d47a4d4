import { Draws } from './draws.ts'
import { mean, quantile } from './quantiles.ts'
import { bytesOf, type RecordedBoot } from './recorded-boot.ts'
import { linkOf, peakOf } from './recorded-storms.ts'
import { simulateStorm } from './simulate-storm.ts'
import { traceOf } from './trace.ts'

/** How devices share a link, fitted to storms that a site had; without one, what is assumed. */
export interface SharingFit {
  /** The part of a link's speed that bytes of boots reach: the rest are headers, retransmissions and gaps. */
  reach: number
  reachSpread: number
  /** See `traceOf`. */
  overlap: number
  overlapSpread: number
  /** Standard deviation of the logarithms of the devices' shares. */
  unfairness: number
  /** Standard deviation of ln(replayed / recorded) of the storms; 0 without any. */
  residual: number
}

/** Assumed, and wide: a site's own storms replace them. `npm run bench -- prediction` tells how well they do. */
const assumed: SharingFit = {
  reach: 0.93,
  reachSpread: 0.04,
  overlap: 0.5,
  overlapSpread: 0.25,
  unfairness: 0.1,
  residual: 0.05,
}
/** With a storm of the site. */
const fittedReachSpread = 0.02
const fittedOverlapSpread = 0.2
/** A storm that fills the link says little about it: errors count as this much smaller near what is assumed. */
const overlapDoubt = 0.05
const reachMin = 0.5

const overlaps = [0.1, 0.3, 0.5, 0.7, 0.9]
const unfairnesses = [0, 0.05, 0.1, 0.2, 0.35, 0.5]
const sentFactors = [0.9, 1, 1.1, 1.25]
const reachFactors = [0.92, 0.96, 1, 1.04]
/** A storm that was sent less than this part of what the link carries did not wait for the link. */
const saturatedShare = 0.85
/** Of a storm's times, what is compared. */
const compared = [0.1, 0.5, 0.9, 1]
const seed = 7

/** Boots without others, by version. */
type Alone = Map<string, RecordedBoot[]>
type Parameters = Pick<SharingFit, 'reach' | 'overlap' | 'unfairness'>
type Turn = (from: Parameters) => Parameters[]

/** One parameter after the other, from a grid: some 35 replays of each storm. */
export function* fitStorms(storms: RecordedBoot[][], alone: Alone): Generator<void, SharingFit> {
  if (storms.length === 0) return assumed
  const sent = reachOf(storms, alone)
  let best: Parameters = assumed
  let error = Number.POSITIVE_INFINITY
  // Storms that waited for something else than the link say little about what it carries.
  const first = [...sentFactors.map((factor) => Math.min(1, sent * factor)), assumed.reach]
  const reaches: Turn = (from) => reachFactors.map((factor) => ({ ...from, reach: Math.min(1, from.reach * factor) }))
  const shares: Turn = (from) => unfairnesses.map((unfairness) => ({ ...from, unfairness }))
  const waits: Turn = (from) => overlaps.map((overlap) => ({ ...from, overlap }))
  const turns = [
    (from: Parameters) => first.map((reach) => ({ ...from, reach })),
    waits,
    shares,
    reaches,
    shares,
    reaches,
    waits,
  ]
  for (const turn of turns)
    for (const one of turn(best)) {
      const replayed = yield* errorOf(storms, alone, one)
      const found = Math.hypot(replayed, overlapDoubt * (one.overlap - assumed.overlap))
      if (found < error) [best, error] = [one, found]
    }
  const { reach, overlap, unfairness } = best
  return {
    reach,
    overlap,
    unfairness,
    reachSpread: sent >= saturatedShare * reach ? fittedReachSpread : assumed.reachSpread,
    overlapSpread: fittedOverlapSpread,
    residual: error,
  }
}

/** What storms were sent at most, less what was sent more often than to devices that are alone. */
function reachOf(storms: RecordedBoot[][], alone: Alone): number {
  const reached = storms.map((storm) => {
    const needed = storm.reduce((sum, { versionId }) => sum + mean((alone.get(versionId) ?? []).map(bytesOf)), 0)
    const sent = storm.reduce((sum, boot) => sum + bytesOf(boot), 0)
    return (peakOf(storm) / linkOf(storm)) * Math.min(1, needed / sent)
  })
  return Math.min(1, Math.max(reachMin, mean(reached)))
}

/** Root of the mean square of ln(replayed / recorded), over parts of the storms' times. */
function* errorOf(storms: RecordedBoot[][], alone: Alone, parameters: Parameters): Generator<void, number> {
  let squares = 0
  for (const storm of storms) {
    const replayed = (yield* replay(storm, alone, parameters)).sort()
    const recorded = Float64Array.from(storm.map(({ totalUs }) => totalUs)).sort()
    for (const part of compared) squares += Math.log(quantile(replayed, part) / quantile(recorded, part)) ** 2
  }
  return Math.sqrt(squares / (storms.length * compared.length))
}

function* replay(
  storm: RecordedBoot[],
  alone: Alone,
  { reach, overlap, unfairness }: Parameters,
): Generator<void, Float64Array> {
  const draws = new Draws(seed)
  const traces = new Map(
    [...alone].map(([versionId, boots]) => [versionId, boots.map((boot) => traceOf(boot, { reach, overlap }))]),
  )
  const fromMs = Math.min(...storm.map(({ startedAtMs }) => startedAtMs))
  const devices = storm.map(({ versionId, startedAtMs }) => ({
    startUs: (startedAtMs - fromMs) * 1000,
    trace: draws.oneOf(traces.get(versionId) ?? []),
    weight: Math.exp(unfairness * draws.normal()),
  }))
  const bytesPerUs = reach * linkOf(storm)
  const limits = { bytesPerUs, deviceBytesPerUs: bytesPerUs, coldUsPerByte: null }
  return (yield* simulateStorm(devices, limits)).totalUs
}
