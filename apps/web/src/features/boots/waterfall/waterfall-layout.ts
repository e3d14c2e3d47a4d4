import { type BootPhase, bootPhases } from '@bootfarm/proto/boot-phases'
import { scaleLinear } from 'd3-scale'
import { type GuestStepGroup, guestStepGroups } from './guest-steps'

/** The layout of a waterfall. Times are in µs since the start of the boot, lengths in the unit of `widthPx`. */

export interface WaterfallPhase {
  name: BootPhase
  startUs: number
  /** Null while the phase lasts, and if its end was never observed. */
  durationUs: number | null
  gaps: { atUs: number; durationUs: number }[]
}

/** A step that the device reported of itself. */
export interface WaterfallStep {
  group: GuestStepGroup
  name: string
  /** Below 0 for what the firmware did before the boot's first packet. */
  startUs: number
  durationUs: number
}

interface WaterfallInput {
  phases: WaterfallPhase[]
  steps?: readonly WaterfallStep[]
  /** False once the boot has an outcome. */
  running: boolean
  /** The boot's elapsed time: its whole duration once it is over. */
  elapsedUs: number
  widthPx: number
  /** How long a phase usually takes: one in ten boots less than `p10Us`, one in ten more than `p90Us`. */
  usual?: readonly { name: BootPhase; p10Us: number; p90Us: number }[]
}

export interface WaterfallBar {
  name: BootPhase
  startUs: number
  endUs: number
  /** The phase is in progress, so the bar grows. */
  open: boolean
  x: number
  width: number
  gaps: { x: number; width: number; atUs: number; durationUs: number }[]
  /** Where the phase usually ends; null: nobody knows. */
  usual: { x: number; width: number; p10Us: number; p90Us: number } | null
}

export interface StepBar extends WaterfallStep {
  x: number
  width: number
}

export interface WaterfallLayout {
  totalUs: number
  /** The range of the axis: from before 0 if the firmware reported itself, to the end of the last step. */
  axis: { fromUs: number; toUs: number }
  /** In the groups' order, by start. */
  steps: StepBar[]
  bars: WaterfallBar[]
  ticks: { us: number; x: number }[]
}

/** A phase of a few µs is still to be seen and hit. */
const barWidthMin = 2
const pixelsPerTick = 90
/** No firmware takes longer before its first packet; a greater number means a broken clock. */
const firmwareUsMax = 600 * 1_000_000
/** Steps may continue after the boot, but must not squeeze it into a corner. */
const afterBootShareMax = 0.5

export function layOutWaterfall(input: WaterfallInput): WaterfallLayout {
  const { phases, running, elapsedUs, widthPx, steps = [], usual = [] } = input
  const endOf = (phase: WaterfallPhase) =>
    phase.durationUs === null ? Math.max(phase.startUs, elapsedUs) : phase.startUs + phase.durationUs
  const totalUs = Math.max(1, elapsedUs, ...phases.map(endOf))
  const axis = axisOf(steps, totalUs)
  const scale = scaleLinear().domain([axis.fromUs, axis.toUs]).range([0, widthPx]).clamp(true)
  const span = (fromUs: number, toUs: number) => {
    const width = Math.max(barWidthMin, scale(toUs) - scale(fromUs))
    // A narrow bar at the very end stays inside.
    return { x: Math.min(scale(fromUs), widthPx - width), width }
  }
  const usualOf = ({ name, startUs }: WaterfallPhase) => {
    const range = usual.find((other) => other.name === name)
    return range ? { ...range, ...span(startUs + range.p10Us, startUs + range.p90Us) } : null
  }
  const bars = inOrder(phases).map((phase) => {
    const endUs = endOf(phase)
    return {
      name: phase.name,
      startUs: phase.startUs,
      endUs,
      open: running && phase.durationUs === null,
      ...span(phase.startUs, endUs),
      gaps: phase.gaps
        .filter(({ atUs }) => atUs < endUs)
        .map((gap) => ({ ...gap, ...span(gap.atUs, Math.min(gap.atUs + gap.durationUs, endUs)) })),
      usual: usualOf(phase),
    }
  })
  const tickCount = Math.max(2, Math.floor(widthPx / pixelsPerTick))
  return {
    totalUs,
    axis,
    steps: inGroups(steps).map((step) => ({
      ...step,
      ...span(step.startUs, step.startUs + step.durationUs),
    })),
    bars,
    ticks: scale.ticks(tickCount).map((us) => ({ us, x: scale(us) })),
  }
}

function axisOf(steps: readonly WaterfallStep[], totalUs: number): { fromUs: number; toUs: number } {
  const first = Math.min(0, ...steps.map(({ startUs }) => startUs))
  const last = Math.max(0, ...steps.map(({ startUs, durationUs }) => startUs + durationUs))
  return {
    fromUs: Math.max(first, -firmwareUsMax),
    toUs: Math.max(totalUs, Math.min(last, totalUs * (1 + afterBootShareMax))),
  }
}

function inGroups(steps: readonly WaterfallStep[]): WaterfallStep[] {
  return steps.toSorted(
    (a, b) => guestStepGroups.indexOf(a.group) - guestStepGroups.indexOf(b.group) || a.startUs - b.startUs,
  )
}

/** Sorts phases in the order of the chain, regardless of the order of arrival. */
function inOrder<Phase extends { name: BootPhase }>(phases: Phase[]): Phase[] {
  return [...phases].sort((a, b) => bootPhases.indexOf(a.name) - bootPhases.indexOf(b.name))
}

interface AbsentPhases {
  /** The chain went past them. */
  notPartOfThisBoot: BootPhase[]
  /** The boot has not come to them, or never did. */
  notReached: BootPhase[]
}

/** Sorts the phases that the boot does not have by whether a later one was seen. */
export function absentPhases(present: { name: BootPhase }[]): AbsentPhases {
  const seen = new Set(present.map(({ name }) => name))
  const lastIndex = bootPhases.findLastIndex((name) => seen.has(name))
  const absent = bootPhases.filter((name) => !seen.has(name))
  return {
    notPartOfThisBoot: absent.filter((name) => bootPhases.indexOf(name) < lastIndex),
    notReached: absent.filter((name) => bootPhases.indexOf(name) > lastIndex),
  }
}

type LabelSide = 'after' | 'before' | 'inside'

/** Where a bar's text fits: after the bar, otherwise before it, otherwise on it. */
export function labelSide(bar: { x: number; width: number }, textWidth: number, plotWidth: number): LabelSide {
  if (bar.x + bar.width + textWidth <= plotWidth) return 'after'
  return bar.x >= textWidth ? 'before' : 'inside'
}

/** How much later than its last report a boot may be: the longest silence for which an edge waits. */
const unreportedUsMax = 600 * 1_000_000

/**
 * Returns the boot's elapsed time now. The edge's wall clock may be wrong by years: it is trusted only if it fits the
 * reports.
 * @param totalUs the end of the last known phase
 */
export function elapsedOf(boot: { startedAt: string; totalUs: number; outcome: string | null }, now: Date): number {
  if (boot.outcome !== null) return boot.totalUs
  const byClockUs = (now.getTime() - Date.parse(boot.startedAt)) * 1000
  const plausible = byClockUs >= boot.totalUs && byClockUs <= boot.totalUs + unreportedUsMax
  return plausible ? byClockUs : boot.totalUs
}
