import { bootPhases } from '@bootfarm/proto/boot-phases'
import type { SampledBoot } from './read-sample.ts'

/** What a set of boots adds up to: pure. */

/** Figures of a sample: multiply counts by the inverse of its share. */
export interface Figures {
  bootCount: number
  readyCount: number
  /** Failed or silent. */
  failedCount: number
  /** Of ready boots; null without any. */
  p50Us: number | null
  p95Us: number | null
  p99Us: number | null
  /** Mean of each phase over the ready boots, in the order of `bootPhases`; the last is time that is in no phase. */
  phasesUs: number[]
}

export function figuresOf(boots: SampledBoot[]): Figures {
  const ready = boots.filter(({ outcome }) => outcome === 'ready')
  const durations = ready.flatMap(({ durationUs }) => durationUs ?? []).sort((a, b) => a - b)
  return {
    bootCount: boots.length,
    readyCount: ready.length,
    failedCount: boots.filter(({ outcome }) => outcome === 'failed' || outcome === 'silent').length,
    p50Us: quantileOf(durations, 0.5),
    p95Us: quantileOf(durations, 0.95),
    p99Us: quantileOf(durations, 0.99),
    phasesUs: meanPhases(ready),
  }
}

/** The smallest value that this share of the values does not exceed. @param sorted ascending */
export function quantileOf(sorted: number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null
}

function meanPhases(ready: SampledBoot[]): number[] {
  const sums = [...bootPhases, 'other'].map(() => 0)
  for (const boot of ready) {
    const phases = phaseTimes(boot)
    for (const [index, us] of phases.entries()) sums[index] = (sums[index] ?? 0) + us
  }
  return sums.map((sum) => (ready.length === 0 ? 0 : Math.round(sum / ready.length)))
}

/** µs of each phase of a boot, then the rest of its time. Phases that overlap leave no rest. */
export function phaseTimes({ phases, durationUs }: SampledBoot): number[] {
  const times = bootPhases.map((name) => phases?.find((phase) => phase.name === name)?.durationUs ?? 0)
  const named = times.reduce((sum, us) => sum + us, 0)
  return [...times, Math.max(0, (durationUs ?? 0) - named)]
}

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const stepsMs = [
  ...[1, 5, 15].map((seconds) => seconds * secondMs),
  ...[1, 5, 15].map((minutes) => minutes * minuteMs),
  ...[1, 3, 6, 12].map((hours) => hours * hourMs),
  ...[1, 2, 4].map((days) => days * dayMs),
]
/** More are no columns that a person tells apart. */
export const stepsMax = 96

/** The finest round step that covers a span in at most `stepsMax` columns. */
export function stepOf(spanMs: number): number {
  return stepsMs.find((stepMs) => spanMs / stepMs <= stepsMax) ?? Math.ceil(spanMs / stepsMax / dayMs) * dayMs
}

const ladders = [
  [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8],
  [1, 1.5, 2, 3, 5, 7],
  [1, 2, 5],
]
const decadesUs = Array.from({ length: 13 }, (_, power) => 10 ** power)
const binsMax = 28

/** Lower edges of bins of duration, ascending from 0: as fine as fits. Each ends where the next begins. */
export function durationEdges(durations: number[]): number[] {
  const lowest = durations.reduce((least, us) => Math.min(least, us), Number.POSITIVE_INFINITY)
  const highest = durations.reduce((most, us) => Math.max(most, us), 0)
  let coarsest: number[] = [0]
  for (const ladder of ladders) {
    const rungs = decadesUs.flatMap((decade) => ladder.map((digit) => digit * decade))
    const first = rungs.findLastIndex((rung) => rung <= lowest)
    const last = rungs.findLastIndex((rung) => rung <= highest)
    // One bin more on each side: a distribution that fills its frame looks cut off.
    coarsest = [...(first > 0 ? [] : [0]), ...rungs.slice(Math.max(0, first - 1), last + 2)]
    if (coarsest.length <= binsMax) return coarsest
  }
  // From the longest downwards: what is quicker than all of these is in the first one.
  return [0, ...coarsest.slice(1 - binsMax)]
}

/** The bin of a duration; the first one takes what is shorter than all. */
export function binOf(edges: number[], us: number): number {
  return Math.max(
    0,
    edges.findLastIndex((edge) => edge <= us),
  )
}

export interface Cells {
  /** Index of the step of each cell that has boots. */
  steps: number[]
  /** Index of its bin of duration. */
  bins: number[]
  counts: number[]
}

/** Counts boots that are over by step and duration. */
export function cellsOf(
  boots: SampledBoot[],
  { stepAt, edges }: { stepAt: (ms: number) => number; edges: number[] },
): Cells {
  const counts = new Map<number, number>()
  for (const { startedMs, durationUs } of boots) {
    if (durationUs === null) continue
    const key = stepAt(startedMs) * edges.length + binOf(edges, durationUs)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  const keys = [...counts.keys()].sort((a, b) => a - b)
  return {
    steps: keys.map((key) => Math.floor(key / edges.length)),
    bins: keys.map((key) => key % edges.length),
    counts: keys.map((key) => counts.get(key) ?? 0),
  }
}

/** In groups by a key, the largest first. */
export function grouped<Key>(boots: SampledBoot[], keyOf: (boot: SampledBoot) => Key): [Key, SampledBoot[]][] {
  const groups = new Map<Key, SampledBoot[]>()
  for (const boot of boots) {
    const key = keyOf(boot)
    const group = groups.get(key)
    if (group) group.push(boot)
    else groups.set(key, [boot])
  }
  return [...groups].sort(([, a], [, b]) => b.length - a.length)
}
