import { Prisma } from '@bootfarm/db'
import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import type { z } from 'zod'
import { visibleBoots } from '../access/visible.ts'
import { bootWhereSql, partitionsMax, readBootDays, whereOfFilter } from '../boot/public.ts'
import type { bootFilterInput } from '../boot/schema.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { withStatementLimit } from '../context/statement-limit.ts'
import { dayMs } from '../rules/utc-day.ts'

/**
 * Reads the boots of a filter, or a sample of them where they are many. Edges choose the ids of boots at random (UUID
 * version 4), so boots whose id is below a bound are a random sample, and the primary key of each day finds them
 * without reading the others. The same filter gives the same sample.
 */

/** p99 of as many has a tenth of a percent of error in its rank; their rows are some 4 MB of JSON. */
export const sampleMax = 10_000
/** A first look counts these boots: one in as many. */
const lookPart = 1024
/** So many of a look tell how many there are to within a half; fewer boots are read whole. */
const lookMin = (2 * sampleMax) / lookPart
/** Boots that a filter without an index may read. */
const searchedMax = 250_000
/** For each statement: the database has other work. */
const statementLimitMs = 2_500

export type SampleFilter = Omit<z.output<typeof bootFilterInput>, 'sort' | 'since' | 'until'>

export interface Span {
  since: Date
  until: Date
}

export interface SampledBoot {
  id: string
  startedMs: number
  /** Null while it is booting. */
  durationUs: number | null
  outcome: BootOutcome | null
  siteId: string
  edgeId: string
  deviceId: string | null
  /** Of its device now; null for a boot of no registered device. */
  collectionId: string | null
  versionId: string | null
  failedCause: string | null
  clientArch: number | null
  isCold: boolean | null
  processors: number | null
  memoryMib: number | null
  networkCard: string | null
  storage: string | null
  hardwareModel: string | null
  edgeRelease: string | null
  segment: string | null
  /** µs of each phase of a ready boot, by name; null for other boots. */
  phases: { name: string; durationUs?: number | null }[] | null
}

export interface Sample {
  boots: SampledBoot[]
  /** The share of the filter's boots that `boots` is; 1: all of them. */
  share: number
}

/** Throws `invalid` as lists of boots do, and `unavailable` if PostgreSQL takes too long. */
export async function readSample(context: ServiceContext, filter: SampleFilter, span: Span): Promise<Sample> {
  const statement = await statementOf(context, filter, span)
  return withStatementLimit(context.db, {
    limitMs: statementLimitMs,
    tooLong: 'These boots take too long to read. Choose a shorter period, or filter by a site or a version.',
    work: () => readAdapted(context, statement),
  })
}

interface Statement {
  /** Of the organization and the span. */
  among: Prisma.Sql
  where: Prisma.Sql
  /** PostgreSQL reads many boots for each that the filter has: no index leads to them. */
  isSearch: boolean
  /** In parts: each day that a statement reads costs planning and locks. */
  days: Date[][]
}

async function statementOf(context: ServiceContext, filter: SampleFilter, { since, until }: Span): Promise<Statement> {
  const { organizationId } = context.actor
  const visible = await visibleBoots(context)
  const wanted = await whereOfFilter(context, filter)
  const days = (await readBootDays(context))
    .filter((day) => day.receivedOn.getTime() + dayMs > since.getTime() && day.earliestStartedAt < until)
    .map(({ receivedOn }) => receivedOn)
  const among = Prisma.sql`boot.organization_id = ${organizationId}::uuid and boot.started_at >= ${since}
    and boot.started_at < ${until}`
  return {
    among,
    where: Prisma.sql`${among} and ${bootWhereSql({ AND: [visible, wanted] })}`,
    isSearch: isWithoutIndex(filter),
    days: Array.from({ length: Math.ceil(days.length / partitionsMax) }, (_, index) =>
      days.slice(index * partitionsMax, (index + 1) * partitionsMax),
    ),
  }
}

/** Firmware and reads have no index, and that of versions begins with their vDisk. */
function isWithoutIndex({ clientArch, reads, versionId, vdiskId, ...others }: SampleFilter): boolean {
  const { siteId, edgeId, deviceId, collectionId, search, failedCause } = others
  if (siteId ?? edgeId ?? deviceId ?? collectionId ?? search ?? failedCause) return false
  const { hour, processors, memoryGib, networkCard, hardwareModel, storage, edgeRelease, segment } = others
  if (hour !== undefined || (processors ?? memoryGib) !== undefined) return false
  if (networkCard ?? hardwareModel ?? storage ?? edgeRelease ?? segment) return false
  return clientArch !== undefined || reads !== undefined || (versionId !== undefined && vdiskId === undefined)
}

async function readAdapted(
  { db, actor }: ServiceContext,
  { among, where, isSearch, days }: Statement,
): Promise<Sample> {
  let [looked, passed] = [0, 0]
  for (const some of days) {
    const [row] = await db.$queryRaw<{ count: number; passed: number }[]>`
      select count(*) filter (where ${where})::integer as count, count(*)::integer as passed from boot
      where ${among} and ${ofDays(some)} and ${belowShare(1 / lookPart)}`
    looked += row?.count ?? 0
    passed += row?.passed ?? 0
  }
  const readable = isSearch ? searchedMax / Math.max(1, passed * lookPart) : 1
  let share = Math.min(1, readable, looked < lookMin ? 1 : sampleMax / (looked * lookPart))
  for (;;) {
    const limit = 3 * sampleMax + 1
    const boots: SampledBoot[] = []
    for (const some of days) {
      const condition = Prisma.sql`${where} and ${ofDays(some)} and ${belowShare(share)}`
      boots.push(...(await readBoots(db, { condition, limit, organizationId: actor.organizationId })))
      if (boots.length >= limit) break
    }
    // The look saw far fewer than there are: it may when there are few.
    if (boots.length < limit) return { boots, share }
    share /= 4
  }
}

function ofDays(days: Date[]): Prisma.Sql {
  return Prisma.sql`boot.received_on = any(${days.map((day) => day.toISOString().slice(0, 10))}::date[])`
}

/** The ids of this share of all boots: their first 32 bits are random. */
function belowShare(share: number): Prisma.Sql {
  if (share >= 1) return Prisma.sql`true`
  const bound = Math.max(1, Math.floor(share * 2 ** 32))
  return Prisma.sql`boot.id < ${`${bound.toString(16).padStart(8, '0')}-0000-0000-0000-000000000000`}::uuid`
}

interface Rows {
  condition: Prisma.Sql
  limit: number
  organizationId: string
}

type Tuple = [
  id: string,
  startedMs: number,
  durationUs: number | null,
  outcome: BootOutcome | null,
  siteId: string,
  edgeId: string,
  deviceId: string | null,
  collectionId: string | null,
  versionId: string | null,
  failedCause: string | null,
  clientArch: number | null,
  isCold: boolean | null,
  processors: number | null,
  memoryMib: number | null,
  networkCard: string | null,
  storage: string | null,
  hardwareModel: string | null,
  edgeRelease: string | null,
  segment: string | null,
  phases: SampledBoot['phases'],
]

/** As one JSON text: as rows, ten thousand boots take several times as long to decode. */
async function readBoots(db: ServiceContext['db'], { condition, limit, organizationId }: Rows): Promise<SampledBoot[]> {
  const [row] = await db.$queryRaw<{ boots: string }[]>`
    with read as materialized (
      select id, started_at, duration_us, outcome, site_id, edge_id, device_id, version_id, failed_cause, client_arch, is_cold,
        processors, memory_mib, network_card, storage, hardware_model, edge_release, segment, case when outcome = 'ready' then phases end as phases
      from boot where ${condition} limit ${limit}
    )
    select coalesce(json_agg(json_build_array(read.id, floor(extract(epoch from read.started_at) * 1000)::bigint,
      duration_us, outcome, read.site_id, edge_id, device_id, device.collection_id, version_id, failed_cause,
      client_arch, is_cold, processors, memory_mib, network_card, storage, hardware_model, edge_release, segment, phases)), '[]')::text as boots
    from read left join device on device.organization_id = ${organizationId}::uuid and device.id = read.device_id`
  return (JSON.parse(row?.boots ?? '[]') as Tuple[]).map(bootOf)
}

function bootOf(tuple: Tuple): SampledBoot {
  const [id, startedMs, durationUs, outcome, siteId, edgeId, deviceId, ...others] = tuple
  const [collectionId, versionId, failedCause, clientArch, isCold, ...machine] = others
  const [processors, memoryMib, networkCard, storage, hardwareModel, edgeRelease, segment, phases] = machine
  return {
    id,
    startedMs,
    durationUs,
    outcome,
    siteId,
    edgeId,
    deviceId,
    collectionId,
    versionId,
    failedCause,
    clientArch,
    isCold,
    processors,
    memoryMib,
    networkCard,
    storage,
    hardwareModel,
    edgeRelease,
    segment,
    phases,
  }
}
