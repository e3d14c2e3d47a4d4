import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { countOf, formatDuration } from '../../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../../lib/trpc'
import type { BootDetail } from '../boot-types'

export type BootUsual = RouterOutputs['boot']['usual']

/** What a boot is compared with. */
export interface Baseline {
  of: 'device' | 'version'
  times: NonNullable<BootUsual['device']>
}

/** The device's own earlier boots, or else those of the version; null: there are too few of both. */
export function baselineOf(usual: BootUsual | undefined): Baseline | null {
  if (!usual) return null
  if (usual.device?.total) return { of: 'device', times: usual.device }
  if (usual.version?.total) return { of: 'version', times: usual.version }
  return null
}

export const baselineNames = { device: 'this device', version: 'this version' } as const

type TimedPhase = Pick<BootDetail['phases'][number], 'name' | 'durationUs'>

/** What the ranges behind the timeline say, or why there are none. */
export function usualSentence(phases: TimedPhase[], usual: BootUsual): string {
  const baseline = baselineOf(usual)
  if (!baseline) {
    const count = Math.max(usual.device?.bootCount ?? 0, usual.version?.bootCount ?? 0)
    const known = count === 0 ? 'no earlier boot' : `only ${countOf(count, 'earlier boot')}`
    return `The usual range of each phase is not shown: ${known} of this device or version became ready.`
  }
  const { of, times } = baseline
  const differences = phases.flatMap((phase) => differenceOf(phase, times.phases))
  const compared = differences.length === 0 ? 'Every phase is within it.' : `${differences.join('; ')}.`
  return `Grey: usual range of ${baselineNames[of]}, p10 to p90 of ${countOf(times.bootCount, 'boot')}. ${compared}`
}

function differenceOf({ name, durationUs }: TimedPhase, usual: Baseline['times']['phases']): string[] {
  const range = usual.find((phase) => phase.name === name)
  if (!range || durationUs === null) return []
  const { title } = bootPhaseText(name)
  if (durationUs > range.p90Us) return [`${title} is ${formatDuration(durationUs - range.p90Us)} above it`]
  if (durationUs < range.p10Us) return [`${title} is ${formatDuration(range.p10Us - durationUs)} below it`]
  return []
}
