import { bootPhases, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { countOf, formatCount, formatDuration } from '../../lib/format-quantity.ts'
import { type Estimate, type StormTotals, type Straggler, slowFactor } from './storm-figures.ts'
import { isBooting } from './storm-model.ts'

const duration = (ms: number) => formatDuration(ms * 1000)
/** Nobody plans by the second over minutes. */
const roundTo = (ms: number, stepMs: number) => Math.max(stepMs, Math.ceil(ms / stepMs) * stepMs)

/** The storm in one sentence, for those who do not see the cells too. */
export function summaryText({ devices, ready, booting, queued, unsuccessful, noResponse }: StormTotals): string {
  if (devices === 0) return 'No device has booted in this time.'
  const parts = [`${formatCount(ready)} of ${countOf(devices, 'device')} ready`, `${formatCount(booting)} booting`]
  if (queued > 0) parts.push(`${formatCount(queued)} waiting for power-on`)
  if (unsuccessful > 0) parts.push(`${formatCount(unsuccessful)} failed or timed out`)
  if (noResponse > 0) parts.push(`${formatCount(noResponse)} without a response`)
  return `${parts.join(', ')}.`
}

/** How long it takes until the last device is ready, and what that is based on. */
export function estimateText(estimate: Estimate): { value: string; basis: string } {
  switch (estimate.kind) {
    case 'over':
      return { value: 'Finished', basis: 'No device boots or waits for power-on.' }
    case 'unknown':
      return { value: 'Not enough data', basis: 'An estimate needs five ready devices, or boots of a version before.' }
    case 'rate': {
      const { leftMs, remaining, readyCount, windowMs } = estimate
      const window = duration(roundTo(windowMs, 1000))
      return {
        value: `About ${duration(roundTo(leftMs, leftMs < 60_000 ? 1000 : 10_000))}`,
        basis: `${countOf(remaining, 'device')} left; ${formatCount(readyCount)} became ready in the last ${window}.`,
      }
    }
    case 'usual': {
      const { leftMs, remaining } = estimate
      const isLate = leftMs === 0
      return {
        value: isLate ? 'Any moment' : `About ${duration(roundTo(leftMs, 1000))}`,
        basis: isLate
          ? `${countOf(remaining, 'device')} left, longer than usual already.`
          : `${countOf(remaining, 'device')} left, by the usual boot time of their versions.`,
      }
    }
  }
}

/** Why a boot counts as slow. */
export function stragglerText({ cell, elapsedMs, usualMs, kind, phase }: Straggler): string {
  const factor = (elapsedMs / usualMs).toFixed(1)
  const of =
    kind.basis === 'storm'
      ? `the ${countOf(kind.readyCount, 'boot')} of ${kind.name} here`
      : `the last ${countOf(kind.readyCount, 'boot')} of ${kind.name}`
  const so = isBooting(cell) ? 'so far' : 'until ready'
  const sentence = `${duration(elapsedMs)} ${so}: ${factor} times the median of ${of}, ${duration(usualMs)}.`
  const name = bootPhases.find((one) => one === phase?.name)
  if (!phase || !name) return sentence
  return `${sentence} In ${bootPhaseText(name).title} for ${duration(phase.elapsedMs)}, usually ${duration(phase.usualMs)}.`
}

export const slowMeaning = `Slower than ${slowFactor} times the median of the boots of the same version.`
