import type { BootPath, Owner, OwnerShare } from '@bootfarm/proto/boot-path'
import { type BootPhase, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { formatDuration } from '../../../lib/format-quantity.ts'
import type { BootDetail } from '../boot-types'
import { type Baseline, baselineNames } from './usual.ts'

/** A boot this much slower or faster than the median is unusual. */
const slowRatio = 1.25
const fastRatio = 0.8
/** A phase that exceeds its usual range by less is not worth a sentence. */
const excessUsMin = 100_000

type ToldBoot = Pick<BootDetail, 'outcome' | 'totalUs'> & {
  phases: Pick<BootDetail['phases'][number], 'name' | 'startUs' | 'durationUs'>[]
}

export interface BootSentence {
  /** What was unusual. */
  sentence: string
  /** What would shorten the boot most; null: nothing that is known. */
  help: string | null
}

/** The boot in one sentence; null while it has no time yet. */
export function bootSentence(boot: ToldBoot, path: BootPath, baseline: Baseline | null): BootSentence | null {
  const [largest] = path.owners
  if (!largest) return null
  const slowest = baseline && slowestPhase(boot, baseline)
  // No phase has the largest part, such as the time in which a loader asks others than its edge.
  const isToldByPhase = slowest && (slowest.excessUs > largest.us || isInPhase(boot, path, largest))
  const excess = isToldByPhase ? slowest : null
  const parts = [
    `${beginning(boot)} ${formatDuration(path.totalUs)}${boot.outcome === 'ready' ? comparison(path.totalUs, baseline) : ''}`,
    excess
      ? `${inPhase(excess.name)} took ${formatDuration(excess.durationUs)}, ${formatDuration(excess.excessUs)} longer than usual`
      : `${formatDuration(largest.us)} (${formatShare(largest.share)}) belong to “${largest.owner.title}”`,
  ]
  const first = (excess && largestWithin(path, excess)) ?? largest.owner
  const advised = [first, ...path.owners.map(({ owner }) => owner)].find(({ help }) => help !== null)
  // The sentence has named the largest owner, or a phase.
  const isTold = !excess && advised?.key === largest.owner.key
  const help = advised ? (isTold ? advised.help : `${advised.title}: ${advised.help}`) : null
  return { sentence: `${parts.join('; ')}.`, help }
}

const beginnings: Record<NonNullable<BootDetail['outcome']>, string> = {
  ready: 'Ready in',
  failed: 'Failed after',
  silent: 'Timed out after',
  superseded: 'Restarted after',
  local_disk: 'Left for its local disk after',
  no_response: 'No response after',
}

function beginning({ outcome }: ToldBoot): string {
  return outcome === null ? 'Booting for' : beginnings[outcome]
}

function comparison(totalUs: number, baseline: Baseline | null): string {
  const median = baseline?.times.total?.p50Us
  if (!baseline || !median) return ', with too few earlier boots to compare with'
  const ratio = totalUs / median
  const whose = `${baselineNames[baseline.of]}’s median of ${formatDuration(median)}`
  if (ratio >= slowRatio) return `, ${ratio.toFixed(1)} times ${whose}`
  return ratio <= fastRatio ? `, faster than ${whose}` : `, close to ${whose}`
}

function isInPhase({ phases }: ToldBoot, { segments }: BootPath, { owner }: OwnerShare): boolean {
  return segments
    .filter((segment) => segment.owner.key === owner.key)
    .some(({ fromUs }) =>
      phases.some((phase) => fromUs >= phase.startUs && fromUs < phase.startUs + (phase.durationUs ?? 0)),
    )
}

interface Excess {
  name: BootPhase
  startUs: number
  durationUs: number
  excessUs: number
}

/** The phase that is furthest beyond its p90, with the difference to its median; null: none is. */
export function slowestPhase({ phases }: ToldBoot, { times }: Baseline): Excess | null {
  const beyond = phases.flatMap(({ name, startUs, durationUs }) => {
    const usual = times.phases.find((phase) => phase.name === name)
    if (!usual || durationUs === null || durationUs - usual.p90Us < excessUsMin) return []
    return [{ name, startUs, durationUs, excessUs: durationUs - usual.p50Us }]
  })
  return beyond.reduce<Excess | null>(
    (most, excess) => (most && most.excessUs >= excess.excessUs ? most : excess),
    null,
  )
}

function inPhase(name: BootPhase): string {
  return bootPhaseText(name).title
}

function largestWithin({ segments }: BootPath, { startUs, durationUs }: Excess): Owner | null {
  const inside = segments.filter(({ fromUs, toUs }) => fromUs >= startUs && toUs <= startUs + durationUs)
  const largest = inside.reduce<(typeof inside)[number] | null>(
    (most, segment) => (most && most.toUs - most.fromUs >= segment.toUs - segment.fromUs ? most : segment),
    null,
  )
  return largest?.owner ?? null
}

/** @param share tenths of a percent */
export function formatShare(share: number): string {
  return `${(share / 10).toFixed(1)}\u00a0%`
}
