import type { BootOutcome, BootPhase } from '@bootfarm/proto/boot-phases'
import { addToSketch, bucketOf, sketchedUsMax, type TimeSketch } from './time-sketch.ts'

/** Sums over boots of a site that began within an hour or a UTC day. */

export type RollupGrain = 'hour' | 'day'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const grainMs: Record<RollupGrain, number> = { hour: hourMs, day: dayMs }
/** Hours are kept as long as anybody looks at hours; days permanently. */
const hoursKeptMs = 35 * dayMs

/** The columns of a boot's row that count in the sums. */
export interface RollupBoot {
  siteId: string
  startedAt: Date
  outcome: BootOutcome | null
  totalUs: number
  generated: boolean
  phases: { name: BootPhase; durationUs?: number | null | undefined }[]
}

export interface PhaseSums {
  count: number
  sumUs: number
  buckets: TimeSketch
}

export interface RollupSums {
  counts: Record<BootOutcome | 'booting' | 'generated', number>
  totalUsSum: number
  totalUsBuckets: TimeSketch
  phases: Record<string, PhaseSums>
}

export interface RollupPlace {
  siteId: string
  grain: RollupGrain
  startsAt: Date
}

/** The first hour of which sums are kept; what belongs to an earlier one is neither added nor taken back. */
export function firstHourKept(now: Date): Date {
  return new Date(Math.floor((now.getTime() - hoursKeptMs) / hourMs) * hourMs)
}

export function emptySums(): RollupSums {
  return {
    counts: { booting: 0, ready: 0, failed: 0, silent: 0, no_response: 0, superseded: 0, local_disk: 0, generated: 0 },
    totalUsSum: 0,
    totalUsBuckets: {},
    phases: {},
  }
}

/** Changes of the sums by changes of boots, by place. */
export class RollupChanges {
  readonly #now: Date
  readonly #places = new Map<string, { place: RollupPlace; sums: RollupSums }>()

  constructor(now: Date) {
    this.#now = now
  }

  /** @param sign -1 takes back what it had added */
  count(boot: RollupBoot, sign: 1 | -1): void {
    for (const grain of ['hour', 'day'] as const) {
      const startsAt = new Date(Math.floor(boot.startedAt.getTime() / grainMs[grain]) * grainMs[grain])
      if (grain === 'hour' && startsAt < firstHourKept(this.#now)) continue
      addBoot(this.#sumsOf({ siteId: boot.siteId, grain, startsAt }), boot, sign)
    }
  }

  entries(): { place: RollupPlace; sums: RollupSums }[] {
    return [...this.#places.values()]
  }

  #sumsOf(place: RollupPlace): RollupSums {
    const key = placeKey(place)
    const known = this.#places.get(key) ?? { place, sums: emptySums() }
    this.#places.set(key, known)
    return known.sums
  }
}

export function placeKey({ siteId, grain, startsAt }: RollupPlace): string {
  return `${siteId} ${grain} ${startsAt.getTime()}`
}

function addBoot(sums: RollupSums, boot: RollupBoot, sign: 1 | -1): void {
  sums.counts[boot.outcome ?? 'booting'] += sign
  if (boot.generated) sums.counts.generated += sign
  if (boot.outcome !== 'ready') return
  sums.totalUsSum += sign * Math.min(boot.totalUs, sketchedUsMax)
  addToSketch(sums.totalUsBuckets, bucketOf(boot.totalUs), sign)
  for (const { name, durationUs } of boot.phases)
    if (typeof durationUs === 'number') addPhase(sums, name, { durationUs, sign })
}

function addPhase(sums: RollupSums, name: string, { durationUs, sign }: { durationUs: number; sign: 1 | -1 }): void {
  const bucket = bucketOf(durationUs)
  const sumUs = sign * Math.min(durationUs, sketchedUsMax)
  mergePhase(sums.phases, name, { count: sign, sumUs, buckets: { [bucket]: sign } })
}

/** `into` is changed. */
export function addSums(into: RollupSums, sums: RollupSums): void {
  for (const [name, count] of Object.entries(sums.counts)) into.counts[name as keyof RollupSums['counts']] += count
  into.totalUsSum += sums.totalUsSum
  for (const [bucket, count] of Object.entries(sums.totalUsBuckets)) addToSketch(into.totalUsBuckets, bucket, count)
  for (const [name, phase] of Object.entries(sums.phases)) mergePhase(into.phases, name, phase)
}

/** A phase without any boots is kept only as long as its buckets do not cancel each other. */
function mergePhase(into: Record<string, PhaseSums>, name: string, phase: PhaseSums): void {
  const known = into[name] ?? { count: 0, sumUs: 0, buckets: {} }
  known.count += phase.count
  known.sumUs += phase.sumUs
  for (const [bucket, count] of Object.entries(phase.buckets)) addToSketch(known.buckets, bucket, count)
  const isEmpty = known.count === 0 && known.sumUs === 0 && Object.keys(known.buckets).length === 0
  if (isEmpty) delete into[name]
  else into[name] = known
}
