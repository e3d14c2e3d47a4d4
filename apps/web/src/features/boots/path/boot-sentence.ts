import type { BootPath, Owner, OwnerShare } from '@bootfarm/proto/boot-path'
import { type BootPhase, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { formatDuration } from '../../../lib/format-quantity.ts'
import type { BootDetail } from '../boot-types'
import { type Baseline, baselineNames } from './usual.ts'

/** What exceeds its usual range by less is not worth a sentence. */
const excessUsMin = 100_000
/** Phases that a sentence names as the reasons of a difference. */
const reasonsMax = 3

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
  const reasons = boot.outcome === 'ready' && baseline ? reasonsOf(boot, path.totalUs, baseline) : ''
  const parts = [
    `${beginning(boot)} ${formatDuration(path.totalUs)}${boot.outcome === 'ready' ? comparison(path.totalUs, baseline) : ''}${reasons}`,
    ...(excess && reasons !== '' ? [] : [excess ? excessText(excess) : shareText(largest)]),
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

function excessText({ name, durationUs, excessUs }: Excess): string {
  return `${inPhase(name)} took ${formatDuration(durationUs)}, ${formatDuration(excessUs)} longer than usual`
}

function shareText({ us, share, owner }: OwnerShare): string {
  return `${formatDuration(us)} (${formatShare(share)}) belong to “${owner.title}”`
}

/** The difference to the median of the boots that it is compared with, if it is outside of their usual range. */
function comparison(totalUs: number, baseline: Baseline | null): string {
  const usual = baseline?.times.total
  if (!baseline || !usual) return ', with too few earlier boots to compare with'
  const range = `${formatDuration(usual.p10Us)} to ${formatDuration(usual.p90Us)} for ${baselineNames[baseline.of]}`
  if (isSlow(totalUs, usual)) return `, ${formatDuration(totalUs - usual.p50Us)} longer than usual (${range})`
  if (usual.p10Us - totalUs >= excessUsMin)
    return `, ${formatDuration(usual.p50Us - totalUs)} shorter than usual (${range})`
  return `, as usual (${range})`
}

function isSlow(us: number, { p90Us }: { p90Us: number }): boolean {
  return us - p90Us >= excessUsMin
}

/** The phases to which a slow boot owes the most of its difference; empty for an ordinary one. */
function reasonsOf(boot: ToldBoot, totalUs: number, baseline: Baseline): string {
  const { total } = baseline.times
  if (!total || !isSlow(totalUs, total)) return ''
  const reasons = excesses(boot, baseline)
    .slice(0, reasonsMax)
    .map(({ name, excessUs }) => `${inPhase(name)} +${formatDuration(excessUs)}`)
  return reasons.length === 0 ? '' : `: ${reasons.join(', ')}`
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

/** The phase that is furthest beyond what is usual; null: none is. */
export function slowestPhase(boot: ToldBoot, baseline: Baseline): Excess | null {
  return excesses(boot, baseline)[0] ?? null
}

/** The phases beyond their p90, each with the difference to its median, the largest first. */
function excesses({ phases }: ToldBoot, { times }: Baseline): Excess[] {
  const beyond = phases.flatMap(({ name, startUs, durationUs }) => {
    const usual = times.phases.find((phase) => phase.name === name)
    if (!usual || durationUs === null || !isSlow(durationUs, usual)) return []
    return [{ name, startUs, durationUs, excessUs: durationUs - usual.p50Us }]
  })
  return beyond.sort((a, b) => b.excessUs - a.excessUs)
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
