import { type Victim, victims } from '../lib/control-plane/kill-drill.ts'

export interface Strike {
  atMs: number
  victim: Victim
  /** The index of an edge, where the victim is one. */
  edgeIndex: number
}

/** No request of an edge gets through. */
export interface Outage {
  fromMs: number
  untilMs: number
}

export interface SoakPlan {
  strikes: Strike[]
  /** Counted for each edge. */
  outages: Outage[][]
}

interface PlanOptions {
  minutes: number
  kills: number
  seed: number
  edgeCount: number
  /** Only the first ones; the others are never killed. */
  mortalEdgeCount: number
}

/** For a run of 20 minutes; shorter runs have shorter outages. */
const fullRunMs = 20 * 60_000
const [outageMsMin, outageMsMax] = [30_000, 180_000]
const [reachedMsMin, reachedMsMax] = [20_000, 60_000]

/** Decides from the seed alone which program dies when, and when which edge is cut off. */
export function planSoak({ minutes, kills, seed, edgeCount, mortalEdgeCount }: PlanOptions): SoakPlan {
  const random = randomNumbers(seed)
  const durationMs = minutes * 60_000
  const order = shuffled(
    Array.from({ length: kills }, (_, index) => victims[index % victims.length] ?? 'api'),
    random,
  )
  const strikes = order.map((victim, index) => ({
    // Each death has its own slot: never all at once, and never a long time without one.
    atMs: Math.floor(((index + random()) * durationMs) / kills),
    victim,
    edgeIndex: Math.floor(random() * mortalEdgeCount),
  }))
  const outages = Array.from({ length: edgeCount }, () => outagesOf(durationMs, random))
  return { strikes, outages }
}

function outagesOf(durationMs: number, random: () => number): Outage[] {
  const scale = Math.min(1, durationMs / fullRunMs)
  const between = (min: number, max: number) => Math.floor((min + random() * (max - min)) * scale)
  const outages: Outage[] = []
  for (let atMs = 0; ; ) {
    const fromMs = atMs + between(reachedMsMin, reachedMsMax)
    const untilMs = Math.min(fromMs + between(outageMsMin, outageMsMax), durationMs)
    if (fromMs >= durationMs) return outages
    outages.push({ fromMs, untilMs })
    atMs = untilMs
  }
}

/** The milliseconds in which it was cut off. */
export function cutMs(outages: Outage[]): number {
  return outages.reduce((sum, { fromMs, untilMs }) => sum + untilMs - fromMs, 0)
}

function shuffled<T>(items: T[], random: () => number): T[] {
  const left = [...items]
  return items.flatMap(() => left.splice(Math.floor(random() * left.length), 1))
}

/** xorshift32: returns numbers from 0 to below 1. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
}
