import { failingEvidence, scoreAmong, slowerLimit } from './evidence.ts'
import { type DevicePace, expectedDistance, type PaceSpread, paceWith, settledBoots } from './pace.ts'
import { driftOf, spreadOf } from './spread.ts'

/**
 * Watches the boots of one class (devices of the same kind, at one site, that boot the same vDisk) for a value of a
 * factor that makes them slower, or fail more often. Pure: the state goes in and comes out as plain JSON, and is
 * bounded. docs/reference/findings.md says what it finds and what it assumes.
 *
 * Each boot gets one score: its rank among the boots of the class before it. A new value of a factor opens a trial,
 * which collects the scores of the boots that have the value; a segment of the network opens one every few boots,
 * since what happens to it has no name. Each trial has a share of the false alarms that the class may give.
 */

/** In the order in which one is preferred that explains the same boots as well. */
export const factors = ['version', 'edge_release', 'setting', 'segment'] as const
export type Factor = (typeof factors)[number]

export interface WatchedBoot {
  deviceId: string
  pace: DevicePace | null
  atMs: number
  /** In 1/10,000 of its natural logarithm; null: it did not become ready. */
  time: number | null
  /**
   * Null: its outcome says nothing about the class, for example the second failure of one device after the other.
   */
  isFailed: boolean | null
  /** Null: unknown. */
  values: Record<Factor, string | null>
}

/** Boots with a value of a factor, from one on. */
export interface Trial {
  factor: Factor
  value: string
  /** The value was there before. */
  isKnown: boolean
  sinceMs: number
  slower: Tally
  /** The boots of the class without the value, in the same time. */
  others: Tally
  failing: Failing
  othersFailing: Failing
  /** All boots of the class before. */
  failedBefore: Failing
  /** At most `devicesMin`. */
  deviceIds: string[]
  /** Boots of the class since then. */
  age: number
}

interface Failing {
  failures: number
  count: number
}

interface Tally {
  sum: number
  count: number
}

export interface ClassState {
  /** Of boots that became ready, without what is usual for their devices, the oldest first. */
  times: number[]
  /** Of devices that are not known yet; empty once there are enough others. */
  earlyTimes: number[]
  center: number
  spread: number
  tolerance: number
  paces: PaceSpread
  outcomes: Failing
  /** Values that are not new, the most recent first. */
  known: Record<Factor, string[]>
  trials: Trial[]
  deviceIds: string[]
  /** Boots since figures of the times were computed. */
  sinceFigures: number
}

export interface Alarm {
  factor: Factor
  value: string
  kind: 'slower' | 'failing'
  /** When the first boot with the value started, that counts. */
  sinceMs: number
  bootCount: number
  /** The logarithm of how much better a shift explains the boots than none. */
  evidence: number
  /** Other values that explain these boots about as well. */
  alsoChanged: { factor: Factor; value: string }[]
}

/** Limits of the state. */
const timesMax = 1_024
const earlyMax = 256
const knownMax = 12
const trialsMax = 64
const outcomesMax = 2_048
/** Fewer boots before are nothing to compare with. */
export const bootsBeforeMin = 64
/** A trial ends without a finding: smaller shifts than this many boots show are those of drifting networks. */
export const trialBoots = 50
/** If boots fail, few of them have a time. */
const failingBoots = 4 * trialBoots
const trialAgeMax = 2_000
/** A finding needs so many boots, of so many devices if the class has them. */
const bootsMin = 8
const devicesMin = 3
const failuresMin = 3
const segmentEvery = 10
const figuresEvery = 16
/** Of so many quiet sets of 1,000 boots, at most one has a false alarm. */
export const setsPerFalseAlarm = 1_000
/** How many trials a class opens in 1,000 boots, and their share of the false alarms; more trials are more of them. */
const shares = {
  named: { trials: 10, share: 0.8 },
  segment: { trials: 100, share: 0.15 },
  namedFailing: { trials: 10, share: 0.03 },
  segmentFailing: { trials: 100, share: 0.02 },
}
/** A shift that is no larger is none, in 1/10,000. */
const toleranceMin = 10
const driftTolerance = 1.5

export function emptyClass(): ClassState {
  return {
    times: [],
    earlyTimes: [],
    center: 0,
    spread: 1,
    tolerance: toleranceMin,
    paces: { count: 0, product: 0, square: 0 },
    outcomes: { failures: 0, count: 0 },
    known: { version: [], edge_release: [], setting: [], segment: [] },
    trials: [],
    deviceIds: [],
    sinceFigures: 0,
  }
}

function riskOf(of: keyof typeof shares): number {
  return shares[of].share / shares[of].trials / setsPerFalseAlarm
}

/** The sum of scores that a finding needs. A new segment has a name, a known one does not. */
export function slowerNeeded(isKnown: boolean): number {
  return isKnown ? segmentNeeded : namedNeeded
}
const namedNeeded = slowerLimit(trialBoots, riskOf('named'))
const segmentNeeded = slowerLimit(trialBoots, riskOf('segment'))

/** The logarithm of the evidence that a finding of failures needs. */
function failingNeeded(isKnown: boolean): number {
  return -Math.log(riskOf(isKnown ? 'segmentFailing' : 'namedFailing'))
}

interface Watched {
  /** The device's pace from now on. */
  pace: DevicePace | null
  /** What was found: then the class learns from the beginning. */
  alarm: Alarm | null
}

/** Takes the next boot of the class; `state` is changed. */
export function watchBoot(state: ClassState, boot: WatchedBoot): Watched {
  const before = timesBefore(state)
  const isSettled = (boot.pace?.count ?? 0) >= settledBoots
  const isLearned = before.length >= bootsBeforeMin
  const isUsed = boot.time !== null && (isSettled || state.times.length < bootsBeforeMin)
  const time = boot.time === null ? null : boot.time - Math.round(expectedDistance(boot.pace, state.paces))
  const score = isLearned && isUsed && time !== null ? scoreAmong(before, time - Math.round(state.tolerance)) : null
  openTrials(state, boot, isLearned)
  for (const trial of state.trials) addBoot(trial, boot, score)
  const alarm = findAlarm(state, boot.isFailed === true)
  state.trials = alarm ? [] : state.trials.filter(isOpen)
  if (alarm) forget(state)
  const isFirst = state.center === 0
  if (isUsed && time !== null) learnTime(state, { time, isSettled })
  learnOutcome(state, boot)
  const pace = boot.time === null || isFirst ? boot.pace : paceWith(boot.pace, boot.time - state.center, state.paces)
  return { pace, alarm }
}

function timesBefore({ times, earlyTimes }: ClassState): readonly number[] {
  return times.length >= bootsBeforeMin ? times : [...earlyTimes, ...times]
}

function openTrials(state: ClassState, boot: WatchedBoot, isLearned: boolean): void {
  for (const factor of factors) {
    const value = boot.values[factor]
    if (value === null) continue
    const known = state.known[factor]
    const isKnown = known.includes(value)
    state.known[factor] = [value, ...known.filter((other) => other !== value)].slice(0, knownMax)
    const isDue = isKnown ? factor === 'segment' && isSegmentDue(state, value) : known.length > 0
    if (isLearned && isDue && state.trials.length < trialsMax)
      state.trials.push(newTrial(state, { factor, value, isKnown, sinceMs: boot.atMs }))
  }
}

/** The only segment of a class has nothing to be compared with. */
function isSegmentDue({ trials, known }: ClassState, value: string): boolean {
  if (known.segment.length < 2) return false
  const same = trials.filter((trial) => trial.factor === 'segment' && trial.value === value)
  return same.every(({ slower, failing }) => Math.max(slower.count, failing.count) >= segmentEvery)
}

function newTrial({ outcomes }: ClassState, of: Pick<Trial, 'factor' | 'value' | 'isKnown' | 'sinceMs'>): Trial {
  return {
    factor: of.factor,
    value: of.value,
    isKnown: of.isKnown,
    sinceMs: of.sinceMs,
    slower: { sum: 0, count: 0 },
    others: { sum: 0, count: 0 },
    failing: { failures: 0, count: 0 },
    failedBefore: { failures: outcomes.failures, count: outcomes.count },
    othersFailing: { failures: 0, count: 0 },
    deviceIds: [],
    age: 0,
  }
}

function addBoot(trial: Trial, boot: WatchedBoot, score: number | null): void {
  trial.age += 1
  const has = boot.values[trial.factor] === trial.value
  if (score !== null) {
    const tally = has ? trial.slower : trial.others
    tally.sum += score
    tally.count += 1
  }
  if (boot.isFailed !== null) {
    const failing = has ? trial.failing : trial.othersFailing
    failing.count += 1
    if (boot.isFailed) failing.failures += 1
  }
  if (!has) return
  if (trial.deviceIds.length < devicesMin && !trial.deviceIds.includes(boot.deviceId))
    trial.deviceIds.push(boot.deviceId)
}

function isOpen({ slower, failing, age }: Trial): boolean {
  return slower.count < trialBoots && failing.count < failingBoots && age < trialAgeMax
}

interface Candidate {
  trial: Trial
  kind: Alarm['kind']
  evidence: number
  isEnough: boolean
}

/** Explains boots as well as the best one if its evidence is at most e times smaller. */
const equalEvidence = 1
const alsoChangedMax = 4

/** @param hasFailed only a boot that failed adds evidence of failures, which takes long to compute */
function findAlarm(state: ClassState, hasFailed: boolean): Alarm | null {
  const candidates = state.trials
    .filter(({ deviceIds }) => deviceIds.length >= Math.min(devicesMin, state.deviceIds.length))
    .flatMap((trial) => (hasFailed ? [...slowerOf(trial), ...failingOf(trial)] : slowerOf(trial)))
  const first = candidates.find(({ isEnough }) => isEnough)
  if (!first) return null
  const same = candidates.filter(({ kind }) => kind === first.kind)
  const best = Math.max(...same.map(({ evidence }) => evidence))
  const [chosen = first, ...others] = same
    .filter(({ evidence }) => evidence >= best - equalEvidence)
    .sort((a, b) => factors.indexOf(a.trial.factor) - factors.indexOf(b.trial.factor) || b.evidence - a.evidence)
  const { trial, kind, evidence } = chosen
  const { factor, value, sinceMs, slower, failing } = trial
  const also = new Map(others.map((other) => [`${other.trial.factor} ${other.trial.value}`, other.trial]))
  also.delete(`${factor} ${value}`)
  return {
    factor,
    value,
    kind,
    sinceMs,
    bootCount: kind === 'slower' ? slower.count : failing.count,
    evidence,
    alsoChanged: [...also.values()].slice(0, alsoChangedMax).map((one) => ({ factor: one.factor, value: one.value })),
  }
}

/** None if the other boots of the trial's time show half as much: then it is something that they have in common. */
function slowerOf(trial: Trial): Candidate[] {
  const { slower, others, isKnown } = trial
  if (slower.count < bootsMin || slower.sum <= 0) return []
  if (others.count >= bootsMin && others.sum / others.count > slower.sum / slower.count / 2) return []
  const evidence = slower.sum ** 2 / slower.count / 2
  return [{ trial, kind: 'slower', evidence, isEnough: slower.sum >= slowerNeeded(isKnown) }]
}

function failingOf(trial: Trial): Candidate[] {
  const { failing, othersFailing: others, failedBefore: before, isKnown } = trial
  if (failing.count < bootsMin || failing.failures < failuresMin) return []
  if (failing.failures * before.count < 2 * failing.count * before.failures) return []
  if (others.count >= bootsMin && 2 * others.failures * failing.count > others.count * failing.failures) return []
  const evidence = failingEvidence(failing, before)
  return [{ trial, kind: 'failing', evidence, isEnough: evidence >= failingNeeded(isKnown) }]
}

/** Times after a finding are another class's: what is slow now is usual from now on. */
function forget(state: ClassState): void {
  state.times = []
  state.earlyTimes = []
  state.outcomes = { failures: 0, count: 0 }
  state.sinceFigures = 0
}

function learnOutcome(state: ClassState, { deviceId, isFailed }: WatchedBoot): void {
  if (state.deviceIds.length < devicesMin && !state.deviceIds.includes(deviceId)) state.deviceIds.push(deviceId)
  if (isFailed === null) return
  const { outcomes } = state
  outcomes.count += 1
  if (isFailed) outcomes.failures += 1
  // Halved, both stay right to within the rounding, and old boots count less and less.
  if (outcomes.count < outcomesMax) return
  outcomes.count /= 2
  outcomes.failures = Math.ceil(outcomes.failures / 2)
}

function learnTime(state: ClassState, { time, isSettled }: { time: number; isSettled: boolean }): void {
  const [kept, max] = isSettled ? [state.times, timesMax] : [state.earlyTimes, earlyMax]
  kept.push(time)
  if (kept.length > max) kept.shift()
  if (state.times.length >= bootsBeforeMin) state.earlyTimes = []
  const times = timesBefore(state)
  state.sinceFigures += 1
  if (state.sinceFigures < figuresEvery && times.length > figuresEvery) return
  const figures = spreadOf(times)
  state.sinceFigures = 0
  state.center = figures.center
  state.spread = figures.spread
  state.tolerance = Math.max(toleranceMin, driftTolerance * driftOf(times, figures))
}
