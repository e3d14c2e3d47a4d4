import { Draws } from './draws.ts'
import { mean, quantile } from './quantiles.ts'
import { bytesOf } from './recorded-boot.ts'
import { type StormResult, simulateStorm } from './simulate-storm.ts'
import type { SiteModel } from './site-model.ts'
import { type Trace, traceOf } from './trace.ts'

export interface StormQuestion {
  versionId: string
  devices: number
  /** Null: all start at once. */
  startsPerSecond: number | null
  /** Nothing is in the edges' memory. */
  isCold: boolean
  /** Devices are spread evenly over them. */
  edges: { linkBytesPerUs: number; processorBytesPerUs: number | null }[]
  /** Null: faster than the edge's. */
  deviceBytesPerUs: number | null
}

/** The value, and the ends of an interval that holds nine of ten measurements. */
export interface Range {
  value: number
  low: number
  high: number
}

export const limitNames = ['link', 'processor', 'storage', 'device'] as const

export interface StormPrediction {
  /** From a device's start until it is ready. */
  p50Us: Range
  p95Us: Range
  /** From the first start until the last device is ready. */
  lastUs: Range
  /** The most that an edge's link is used in a second, as a share of what it carries in practice. */
  linkShare: number
  /** Bytes that edges send. */
  bytes: number
  limitedBy: (typeof limitNames)[number]
  /** Of the mean boot: what it takes alone, its waits for others' transfers, and for a disk of the edge. */
  parts: { aloneUs: number; sharedUs: number; storageUs: number }
}

/** So many replays, each of other draws; fewer of large storms, whose devices average out. */
const replaysMax = 16
const replaysMin = 4
const replayedDevices = 8_000
/** Standard deviation of ln(measured / predicted) that the model itself has, by docs/results. */
const modelSpread = 0.04
/** Of a normal distribution: 90 % lie within. */
const ninetyPercent = 1.645
/** A wait below this share of the boot limits nothing. */
const limitShareMin = 0.15
const anyDeviceBytesPerUs = 1e9
/** Of a link that is used by boots alone. */
const reachMax = 1
const overlapMax = 0.95

interface Replay {
  p50Us: number
  p95Us: number
  lastUs: number
  linkShare: number
  parts: StormPrediction['parts']
}

/** There are boots of the version in the model. Pauses now and then, so that the caller can let others work. */
export function* predictStorm(model: SiteModel, question: StormQuestion): Generator<void, StormPrediction> {
  const count = Math.max(replaysMin, Math.min(replaysMax, Math.round(replayedDevices / question.devices)))
  const replays: Replay[] = []
  for (let seed = 0; seed < count; seed += 1) replays.push(yield* replayOnce(model, question, new Draws(seed)))
  const boots = model.alone.get(question.versionId) ?? []
  const spread = Math.hypot(modelSpread, model.residual)
  const of = (pick: (replay: Replay) => number) => rangeOf(replays.map(pick), spread)
  const parts = {
    aloneUs: mean(replays.map((one) => one.parts.aloneUs)),
    sharedUs: mean(replays.map((one) => one.parts.sharedUs)),
    storageUs: mean(replays.map((one) => one.parts.storageUs)),
  }
  return {
    p50Us: of(({ p50Us }) => p50Us),
    p95Us: of(({ p95Us }) => p95Us),
    lastUs: of(({ lastUs }) => lastUs),
    linkShare: mean(replays.map(({ linkShare }) => linkShare)),
    bytes: question.devices * mean(boots.map(bytesOf)),
    limitedBy: limitOf(parts, model, question),
    parts,
  }
}

/** One storm, with parameters and boots drawn from what is known of them. */
function* replayOnce(model: SiteModel, question: StormQuestion, draws: Draws): Generator<void, Replay> {
  const reach = Math.min(reachMax, model.reach * Math.exp(model.reachSpread * draws.normal()))
  const overlap = Math.max(0, Math.min(overlapMax, model.overlap + model.overlapSpread * draws.normal()))
  const boots = draws.resample(model.alone.get(question.versionId) ?? [])
  const traces = boots.map((boot) => traceOf(boot, { reach, overlap }))
  const cold = question.isCold ? (model.coldUsPerByte.get(question.versionId) ?? null) : null
  const results: { result: StormResult; linkShare: number; traces: Trace[] }[] = []
  for (const [index, { linkBytesPerUs, processorBytesPerUs }] of question.edges.entries()) {
    const devices = devicesOf(question, index, { model, traces, draws })
    const limits = {
      bytesPerUs: Math.min(reach * linkBytesPerUs, processorBytesPerUs ?? Number.POSITIVE_INFINITY),
      deviceBytesPerUs: reach * Math.min(question.deviceBytesPerUs ?? anyDeviceBytesPerUs, linkBytesPerUs),
      coldUsPerByte: cold,
    }
    const result = yield* simulateStorm(devices, limits)
    results.push({
      result,
      linkShare: result.peakBytesPerUs / (reach * linkBytesPerUs),
      traces: devices.map(({ trace }) => trace),
    })
  }
  return replayOf(results)
}

function devicesOf(
  { devices, startsPerSecond, edges }: StormQuestion,
  edge: number,
  { model, traces, draws }: { model: SiteModel; traces: Trace[]; draws: Draws },
) {
  const found = []
  for (let index = edge; index < devices; index += edges.length)
    found.push({
      startUs: startsPerSecond === null ? 0 : (index / startsPerSecond) * 1e6,
      trace: draws.oneOf(traces),
      weight: Math.exp(model.unfairness * draws.normal()),
    })
  return found
}

function replayOf(results: { result: StormResult; linkShare: number; traces: Trace[] }[]): Replay {
  const totals = Float64Array.from(results.flatMap(({ result }) => [...result.totalUs])).sort()
  const storageUs = mean(results.flatMap(({ result }) => [...result.storageUs]))
  const aloneUs = mean(results.flatMap(({ traces }) => traces.map(({ totalUs }) => totalUs)))
  return {
    p50Us: quantile(totals, 0.5),
    p95Us: quantile(totals, 0.95),
    lastUs: Math.max(...results.map(({ result }) => result.lastUs)),
    linkShare: Math.max(...results.map(({ linkShare }) => linkShare)),
    parts: { aloneUs, storageUs, sharedUs: Math.max(0, mean(totals) - aloneUs - storageUs) },
  }
}

/** Times are products of many causes: their logarithms are nearly normal. */
function rangeOf(values: number[], spread: number): Range {
  const logs = values.map(Math.log)
  const middle = mean(logs)
  const drawn = mean(logs.map((log) => (log - middle) ** 2))
  const width = ninetyPercent * Math.sqrt(drawn + spread ** 2)
  return { value: Math.exp(middle), low: Math.exp(middle - width), high: Math.exp(middle + width) }
}

function limitOf(
  { aloneUs, sharedUs, storageUs }: StormPrediction['parts'],
  { reach }: SiteModel,
  { edges }: StormQuestion,
): StormPrediction['limitedBy'] {
  const enough = limitShareMin * (aloneUs + sharedUs + storageUs)
  if (sharedUs < enough && storageUs < enough) return 'device'
  if (storageUs > sharedUs) return 'storage'
  const isProcessor = edges.every(
    ({ linkBytesPerUs, processorBytesPerUs }) =>
      processorBytesPerUs !== null && processorBytesPerUs < reach * linkBytesPerUs,
  )
  return isProcessor ? 'processor' : 'link'
}
