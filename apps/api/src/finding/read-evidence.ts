import type { DbTransaction } from '@bootfarm/db'
import { type BootPhase, bootPhases } from '@bootfarm/proto/boot-phases'
import type { ReadTimesReport } from '@bootfarm/proto/uplink'
import { readTimesViewOf } from '../boot/public.ts'
import type { Factor } from './detect/class-watch.ts'
import { medianOf } from './detect/spread.ts'
import {
  type BootRow,
  type ClassKey,
  classKeyOf,
  classTextOf,
  readBootsAround,
  valuesOf,
} from './read-watched-boots.ts'
import type { EvidenceBoot, evidenceParts, FindingEvidence } from './schema.ts'

/** Boots of each side that a finding keeps. */
const boots = 50
/** Boots that are read to find them: other classes boot at the same time. */
const readMax = 400

export interface Sides {
  before: BootRow[]
  after: BootRow[]
}

interface Asked {
  organizationId: string
  key: ClassKey
  factor: Factor
  value: string
  since: Date
}

/** The boots of a class before a change, and those with it, each the oldest first. */
export async function readSides(
  db: DbTransaction,
  { organizationId, key, factor, value, since }: Asked,
): Promise<Sides> {
  const { siteId, vdiskId } = key
  const around = { organizationId, siteId, vdiskId, at: since, limit: readMax }
  const isOfClass = (boot: BootRow) => classTextOf(classKeyOf(boot)) === classTextOf(key)
  const before = await readBootsAround(db, { ...around, side: 'before' })
  const after = await readBootsAround(db, { ...around, side: 'from' })
  return {
    before: before.filter(isOfClass).slice(0, boots).reverse(),
    after: after.filter((boot) => isOfClass(boot) && valuesOf(boot)[factor] === value).slice(-boots),
  }
}

/** What `finding.evidence` keeps of them, without what the detector knows. */
export async function evidenceOf(
  db: DbTransaction,
  organizationId: string,
  { before, after }: Sides,
): Promise<Omit<FindingEvidence, 'alsoChanged' | 'smallestShift'>> {
  const timings = await readTimings(db, organizationId, [...before, ...after])
  const ready = (rows: BootRow[]) => rows.filter(({ outcome }) => outcome === 'ready')
  const failed = after.filter(({ outcome }) => outcome !== 'ready')
  const total = changeOf(
    ready(before).map(({ totalUs }) => Number(totalUs)),
    ready(after).map(({ totalUs }) => Number(totalUs)),
  )
  const of = (rows: BootRow[]) => ready(rows).flatMap(({ id }) => timings.get(id) ?? [])
  return {
    before: before.map(evidenceBootOf),
    after: after.map(evidenceBootOf),
    total,
    phases: phaseChanges(of(before), of(after)),
    failedBefore: before.length - ready(before).length,
    failedAfter: failed.length,
    failedPhase: mostCommon(failed.flatMap(({ failedPhase }) => bootPhases.find((name) => name === failedPhase) ?? [])),
    failedCause: mostCommon(failed.flatMap(({ failedCause }) => failedCause ?? [])),
  }
}

function evidenceBootOf({ id, startedAt, totalUs, outcome }: BootRow): EvidenceBoot {
  return {
    bootId: id,
    startedAt: startedAt.toISOString(),
    totalUs: Number(totalUs),
    outcome: outcome as EvidenceBoot['outcome'],
  }
}

type PartName = (typeof evidenceParts)[number]

/** Of one boot, in µs. */
interface Timing {
  phases: Partial<Record<BootPhase, number>>
  parts: Partial<Record<PartName, number>>
}

/** Only `writeBoots` writes phases and facts, from reports that zod validated. */
async function readTimings(db: DbTransaction, organizationId: string, rows: BootRow[]): Promise<Map<string, Timing>> {
  const found = await db.$queryRaw<
    { id: string; phases: { name: BootPhase; durationUs?: number }[]; readTimes: ReadTimesReport | null }[]
  >`
    select boot.id::text, boot.phases, detail.facts->'readTimes' as "readTimes"
    from boot_key join boot on boot.organization_id = boot_key.organization_id and boot.id = boot_key.boot_id
      and boot.received_on = boot_key.received_on
    left join boot_detail as detail on detail.organization_id = boot.organization_id and detail.boot_id = boot.id
      and detail.received_on = boot.received_on
    where boot_key.organization_id = ${organizationId}::uuid
      and boot_key.boot_id = any(${rows.map(({ id }) => id)}::uuid[])`
  return new Map(
    found.map(({ id, phases, readTimes }) => [id, { phases: lengthsOf(phases), parts: partsOf(readTimes) }]),
  )
}

function lengthsOf(phases: { name: BootPhase; durationUs?: number }[]): Timing['phases'] {
  return Object.fromEntries(phases.flatMap(({ name, durationUs }) => (durationUs ? [[name, durationUs] as const] : [])))
}

/** Reads belong to the phase in which the system streams its disk. */
function partsOf(report: ReadTimesReport | null): Timing['parts'] {
  if (!report) return {}
  const { storage, send, wire, turnaround } = readTimesViewOf(report)
  const parts: Timing['parts'] = {}
  if (storage) parts.storage = storage.sumUs
  if (send) parts.send = send.sumUs
  if (wire) parts.network = wire.sumUs
  if (turnaround) parts.turnaround = turnaround.sumUs
  return parts
}

function phaseChanges(before: Timing[], after: Timing[]): FindingEvidence['phases'] {
  return bootPhases.flatMap((name) => {
    const of = (timings: Timing[]) => timings.flatMap(({ phases }) => phases[name] ?? [])
    const change = changeOf(of(before), of(after))
    if (!change) return []
    const parts = name === 'stage2' ? partChanges(before, after) : []
    return [{ name, ...change, parts }]
  })
}

function partChanges(before: Timing[], after: Timing[]): FindingEvidence['phases'][number]['parts'] {
  return (['storage', 'send', 'network', 'turnaround'] as const).flatMap((name) => {
    const of = (timings: Timing[]) => timings.flatMap(({ parts }) => parts[name] ?? [])
    const change = changeOf(of(before), of(after))
    return change ? [{ name, ...change }] : []
  })
}

/** Medians; null if one side has none. */
function changeOf(before: number[], after: number[]): { beforeUs: number; afterUs: number } | null {
  if (before.length === 0 || after.length === 0) return null
  return { beforeUs: Math.round(medianOf(before)), afterUs: Math.round(medianOf(after)) }
}

function mostCommon<T extends string>(values: T[]): T | null {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null
}
