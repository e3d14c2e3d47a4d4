import {
  type Alarm,
  emptyClass,
  type Factor,
  type WatchedBoot,
  watchBoot,
} from '../../src/finding/detect/class-watch.ts'
import { type DevicePace, timeOf } from '../../src/finding/detect/pace.ts'
import { randomNumbers } from './random-numbers.ts'

/** Sets of boots with known causes or none, for the tests and the benchmark of what finds causes. */

export const noises = ['lognormal', 'heavy tails', 'stragglers'] as const
export const drifts = ['none', 'trend', 'daily', 'days', 'storms', 'office'] as const

export interface SetOptions {
  seed: number
  /** `office`: as the demo's history has them. */
  noise: (typeof noises)[number] | 'office'
  drift: (typeof drifts)[number]
  /** Standard deviation of the logarithm of the devices' own speeds. */
  deviceSpread: number
  /** Null: the set is quiet. */
  cause: {
    factor: Factor
    /** 0.1: boots take 10 % longer. */
    slower: number
    failing: number
    /** Of a quarter of the devices: they move to a new segment, or something happens in theirs. */
    ofSegment?: 'new' | 'known'
  } | null
}

export const setBoots = 1_000
const devices = 40
const segments = 4
/** Coefficient of variation of a device's boot times: 10 %. */
const noiseSpread = Math.sqrt(Math.log(1 + 0.1 ** 2))
const usualUs = 40_000_000
const usualFailing = 0.02
/** The cause begins with one of these boots. */
const causeFrom = 500
const causeUntil = 700
const clearBefore = 10
const clearAfter = 100
const minuteMs = 60_000
/** Of the demo's history (edge/streamer-zig/src/simulator/history.zig): 85 to 130 % of an ordinary boot. */
const officeFrom = 0.85
const officeUntil = 1.3
/** Boots of a day; the first ones read what nobody has read since the night, from disks. */
const officeBoots = 100
const coldBoots = 15
/** As much longer a cold boot takes (scripts/bench/state/explore.mjs). */
const coldLonger = 1.6

interface Draws {
  uniform(): number
  normal(): number
  below(count: number): number
}

function drawsOf(seed: number): Draws {
  const below = randomNumbers((Math.imul(seed + 1, 0x9e37_79b1) ^ 0x5bd1_e995) | 1)
  for (let skipped = 0; skipped < 16; skipped += 1) below(2)
  const uniform = () => (below(0xffff_ffff) + 0.5) / 0xffff_ffff
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())
  return { uniform, normal, below }
}

/** Logarithms; each has the spread of a variation of 10 %, and stragglers come on top. */
function noiseOf(noise: SetOptions['noise'], { normal, uniform }: Draws): number {
  if (noise === 'heavy tails') {
    // Student's t with 3 degrees of freedom, whose variance is 3.
    const square = normal() ** 2 + normal() ** 2 + normal() ** 2
    return (noiseSpread * normal()) / Math.sqrt(square / 3) / Math.sqrt(3)
  }
  if (noise === 'office') return Math.log(officeFrom + (officeUntil - officeFrom) * uniform())
  const straggles = noise === 'stragglers' && uniform() < 0.05
  return noiseSpread * normal() + (straggles ? Math.log(1.5 + 2.5 * uniform()) : 0)
}

/** What all boots of a time have in common. */
function driftAt(drift: SetOptions['drift'], index: number, dayEffects: number[]): number {
  if (drift === 'trend') return 0.05 * (index / setBoots)
  if (drift === 'daily') return 0.02 * Math.sin((2 * Math.PI * index) / 100)
  if (drift === 'days') return 0.02 * (dayEffects[Math.floor(index / 50)] ?? 0)
  if (drift === 'storms') return index % 100 < 20 ? 0.15 : 0
  if (drift === 'office') return officeAt(index, dayEffects)
  return 0
}

/**
 * A working day: cold boots in the morning, each of which warms the edge for the others, a network that is busier at
 * noon, and days that differ.
 */
function officeAt(index: number, dayEffects: number[]): number {
  const ofDay = index % officeBoots
  const day = dayEffects[Math.floor(index / officeBoots)] ?? 0
  const cold = ofDay < coldBoots ? Math.log(coldLonger) * (1 - ofDay / coldBoots) : 0
  return cold + 0.02 * Math.sin((Math.PI * ofDay) / officeBoots) + 0.01 * day
}

/** New values come at random, as in an installation that is kept up to date: about eight in a set. */
function plansOf({ below }: Draws, cause: SetOptions['cause'], causeAt: number): Map<number, Factor> {
  const plans = new Map<number, Factor>()
  for (const [factor, count] of [
    ['version', 3],
    ['edge_release', 2],
    ['setting', 3],
  ] as const)
    for (let made = 0; made < count; made += 1) {
      const at = 1 + below(setBoots - 1)
      // Nobody can tell which of two changes at once is the cause, and a cause that is replaced has no boots.
      const isClear = at < causeAt - clearBefore || at > causeAt + (cause?.factor === factor ? clearAfter : clearBefore)
      if (!cause || isClear) plans.set(at, factor)
    }
  if (cause && cause.factor !== 'segment') plans.set(causeAt, cause.factor)
  return plans
}

function beginCause(cause: SetOptions['cause'], segmentsOf: string[]): void {
  if (cause?.ofSegment !== 'new') return
  for (let device = 0; device < devices; device += segments) segmentsOf[device] = 'new'
}

export interface SetResult {
  /** Before the cause, or at all if there is none. */
  falseAlarms: Alarm[]
  /** The first one since the cause; null: none. */
  found: Alarm | null
  /** Boots with the cause until it was found. */
  affected: number | null
}

/** Watches a whole set, looking after every boot. */
export function watchSet(options: SetOptions): SetResult {
  const draws = drawsOf(options.seed)
  const { cause } = options
  const causeAt = cause ? causeFrom + draws.below(causeUntil - causeFrom) : Number.POSITIVE_INFINITY
  const plans = plansOf(draws, cause, causeAt)
  const speeds = Array.from({ length: devices }, () => options.deviceSpread * draws.normal())
  const dayEffects = Array.from({ length: setBoots / 50 }, () => draws.normal())
  const state = emptyClass()
  const paces: (DevicePace | null)[] = []
  const segmentsOf = Array.from({ length: devices }, (_, device) => String(device % segments))
  const values = { version: '1', edge_release: '1', setting: '1' }
  const result: SetResult = { falseAlarms: [], found: null, affected: null }
  let affected = 0
  for (let index = 0; index < setBoots && !result.found; index += 1) {
    const planned = plans.get(index)
    if (planned && planned !== 'segment') values[planned] = String(Number(values[planned]) + 1)
    const device = draws.below(devices)
    if (index === causeAt) beginCause(cause, segmentsOf)
    const isAffected = index >= causeAt && (!cause?.ofSegment || device % segments === 0)
    if (isAffected) affected += 1
    const log = noiseOf(options.noise, draws) + (speeds[device] ?? 0) + driftAt(options.drift, index, dayEffects)
    const time = timeOf(usualUs * Math.exp(log) * (isAffected ? 1 + (cause?.slower ?? 0) : 1))
    const isFailed = draws.uniform() < usualFailing + (isAffected ? (cause?.failing ?? 0) : 0)
    const boot: WatchedBoot = {
      deviceId: String(device),
      pace: paces[device] ?? null,
      atMs: index * minuteMs,
      time: isFailed ? null : time,
      isFailed,
      values: { ...values, segment: segmentsOf[device] ?? null },
    }
    const { alarm, pace } = watchBoot(state, boot)
    paces[device] = pace
    if (!alarm) continue
    if (index < causeAt) result.falseAlarms.push(alarm)
    else Object.assign(result, { found: alarm, affected })
  }
  return result
}
