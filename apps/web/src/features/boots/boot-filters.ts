import { bootCauses, bootCauseText, listedOutcomes } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import { countOf, formatDuration } from '../../lib/format-quantity.ts'
import { architecture, clientArchitectures } from './architecture.ts'
import type { BootListInput } from './boot-list'
import { storageKinds, storageText } from './machine-text.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const periodsMs = {
  '1h': hourMs,
  '24h': 24 * hourMs,
  '7d': 7 * 24 * hourMs,
  '30d': 30 * 24 * hourMs,
} as const

const slowerUs = { '10s': 10_000_000, '30s': 30_000_000, '1m': 60_000_000, '5m': 300_000_000 } as const
const sortTexts = {
  startedAt: ['Start', 'oldest first', 'newest first'],
  durationUs: ['Duration', 'shortest first', 'longest first'],
  hour: ['Hour (UTC)', 'earliest first', 'latest first'],
  processors: ['Processors', 'fewest first', 'most first'],
  memoryGib: ['Memory', 'least first', 'most first'],
  networkCard: ['Network card', 'A to Z', 'Z to A'],
  storage: ['Storage of the edge', 'A to Z', 'Z to A'],
} as const
const sorts = Object.keys(sortTexts).flatMap((name) => [name, `-${name}`]) as [BootSort, ...BootSort[]]
type BootSort = NonNullable<BootListInput['sort']>
const wholeNumber = z.string().regex(/^\d{1,14}$/)
const smallNumber = z.string().regex(/^[1-9]\d{0,4}$/)
const reportedText = z.string().min(1).max(64)
/** The API's order of a list without another. */
export const firstSort = '-startedAt'

export const bootFilterShape = {
  sort: z.enum(sorts).optional(),
  search: z.string().max(64).optional(),
  outcome: z.enum([...listedOutcomes, 'booting', 'unsuccessful']).optional(),
  cause: z.enum(bootCauses).optional(),
  device: z.uuid().optional(),
  collection: z.uuid().optional(),
  farm: z.uuid().optional(),
  site: z.uuid().optional(),
  edge: z.uuid().optional(),
  vdisk: z.uuid().optional(),
  version: z.uuid().optional(),
  period: z.enum(['1h', '24h', '7d', '30d']).optional(),
  since: z.iso.datetime().optional(),
  until: z.iso.datetime().optional(),
  slower: z.enum(['10s', '30s', '1m', '5m']).optional(),
  /** µs; a cell of a heat map. */
  durationMin: wholeNumber.optional(),
  durationMax: wholeNumber.optional(),
  /** DHCP option 93. */
  firmware: z
    .string()
    .regex(/^\d{1,5}$/)
    .optional(),
  reads: z.enum(['cold', 'warm']).optional(),
  /** Of a day, in UTC: `08`. */
  hour: z
    .string()
    .regex(/^([01]\d|2[0-3])$/)
    .optional(),
  processors: smallNumber.optional(),
  /** GiB. */
  memory: smallNumber.optional(),
  card: reportedText.optional(),
  model: reportedText.optional(),
  storage: z.enum(storageKinds).optional(),
  release: reportedText.optional(),
  segment: z.cidrv4().optional(),
  origin: z.enum(['device', 'simulated', 'generated']).optional(),
}
export type BootFilters = { [Name in keyof typeof bootFilterShape]?: z.infer<(typeof bootFilterShape)[Name]> }

export const outcomeOptions = [
  { value: 'booting', label: 'Booting' },
  { value: 'ready', label: 'Ready' },
  { value: 'unsuccessful', label: 'Failed or timed out' },
  { value: 'failed', label: 'Failed' },
  { value: 'silent', label: 'Timed out' },
  { value: 'no_response', label: 'No response' },
  { value: 'superseded', label: 'Restarted' },
  { value: 'local_disk', label: 'Booted from local disk' },
]

export const periodOptions = [
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
]

export const slowerOptions = [
  { value: '10s', label: '10 s or longer' },
  { value: '30s', label: '30 s or longer' },
  { value: '1m', label: '1 min or longer' },
  { value: '5m', label: '5 min or longer' },
]

export const readsOptions = [
  { value: 'cold', label: 'Cold: from disks' },
  { value: 'warm', label: 'Warm: from memory' },
]

export const firmwareOptions = Object.keys(clientArchitectures).map((value) => ({
  value,
  label: architecture(Number(value)) ?? value,
}))

export const sortOptions = Object.entries(sortTexts).flatMap(([name, [title, ascending, descending]]) => [
  { value: `-${name}`, label: `${title}, ${descending}` },
  { value: name, label: `${title}, ${ascending}` },
])

export const hourOptions = Array.from({ length: 24 }, (_, hour) => {
  const value = String(hour).padStart(2, '0')
  return { value, label: `${value}:00 to ${value}:59 UTC` }
})

export const storageOptions = storageKinds.map((value) => ({ value, label: storageText(value) }))

/** Usual sizes, and the one that is set. */
export function processorOptions(chosen: string | undefined) {
  return sizeOptions([1, 2, 4, 6, 8, 12, 16, 24, 32, 64], chosen).map((value) => ({
    value,
    label: countOf(Number(value), 'processor'),
  }))
}

export function memoryOptions(chosen: string | undefined) {
  return sizeOptions([1, 2, 4, 8, 16, 32, 64, 128], chosen).map((value) => ({ value, label: `${value}\u00a0GiB` }))
}

function sizeOptions(usual: number[], chosen: string | undefined): string[] {
  const sizes = new Set([...usual, ...(chosen ? [Number(chosen)] : [])])
  return [...sizes].sort((a, b) => a - b).map(String)
}

export const originOptions = [
  { value: 'device', label: 'Real machines' },
  { value: 'simulated', label: 'Simulated devices' },
  { value: 'generated', label: 'Demo history' },
]

/** In the words of a boot's own page. */
export const causeOptions = bootCauses.map((value) => ({ value, label: bootCauseText(value).sentence.slice(0, 60) }))

/**
 * The API's input. A period begins at a full minute: who comes back from a boot soon finds the same list, with all that
 * was loaded of it.
 * @param now fixed while the filters stay, so that a list does not change each minute
 */
export function bootListInput(filters: BootFilters, now: Date): BootListInput {
  const { sort, search, outcome, cause, period, origin, until } = filters
  const since = filters.since ?? (period && sinceOf(period, now))
  return {
    ...(sort && sort !== firstSort && { sort }),
    ...(search && { search }),
    ...(outcome && { outcome }),
    ...(cause && { failedCause: cause }),
    ...idsOf(filters),
    ...(since && { since }),
    ...(until && { until }),
    ...durationOf(filters),
    ...(filters.firmware && { clientArch: Number(filters.firmware) }),
    ...(filters.reads && { reads: filters.reads }),
    ...hardwareOf(filters),
    ...(origin && { origin }),
  }
}

function hardwareOf(filters: BootFilters): BootListInput {
  const { hour, processors, memory, card, model, storage, release, segment } = filters
  return {
    ...(hour && { hour: Number(hour) }),
    ...(processors && { processors: Number(processors) }),
    ...(memory && { memoryGib: Number(memory) }),
    ...(card && { networkCard: card }),
    ...(model && { hardwareModel: model }),
    ...(storage && { storage }),
    ...(release && { edgeRelease: release }),
    ...(segment && { segment }),
  }
}

/** The exact limits count more than a choice of the list. */
function durationOf({ slower, durationMin, durationMax }: BootFilters): BootListInput {
  if (durationMin || durationMax)
    return {
      ...(durationMin && { durationUsMin: Number(durationMin) }),
      ...(durationMax && { durationUsMax: Number(durationMax) }),
    }
  return slower ? { durationUsMin: slowerUs[slower] } : {}
}

/** `12.0 s to 15.0 s`; null without exact limits. */
export function durationText({ durationMin, durationMax }: BootFilters): string | null {
  if (durationMin && durationMax)
    return `${formatDuration(Number(durationMin))} to ${formatDuration(Number(durationMax))}`
  if (durationMin) return `${formatDuration(Number(durationMin))} or longer`
  return durationMax ? `${formatDuration(Number(durationMax))} or shorter` : null
}

function idsOf({ device, collection, farm, site, edge, vdisk, version }: BootFilters): BootListInput {
  return {
    ...(device && { deviceId: device }),
    ...(collection && { collectionId: collection }),
    ...(farm && { farmId: farm }),
    ...(site && { siteId: site }),
    ...(edge && { edgeId: edge }),
    ...(vdisk && { vdiskId: vdisk }),
    ...(version && { versionId: version }),
  }
}

function sinceOf(period: keyof typeof periodsMs, now: Date): string {
  const minute = Math.floor(now.getTime() / minuteMs) * minuteMs
  return new Date(minute - periodsMs[period]).toISOString()
}

/** The same boots as a file. */
export function bootExportHref(input: BootListInput, format: 'csv' | 'jsonl'): string {
  const given = Object.entries({ ...input, format }).filter(([, value]) => value !== undefined)
  return `/api/v1/boot-exports?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}
