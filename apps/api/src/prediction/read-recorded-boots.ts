import { Prisma } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import type { ServiceContext } from '../context/service-context.ts'
import { type RecordedBoot, recordedBootOf } from './model/recorded-boot.ts'

/** The newest days with boots: older ones were of other devices and edges. */
const daysMax = 30
/** Of each version that is predicted; a prediction looks at no more of them. */
const ofVersionMax = 60
/** Of all versions of the vDisk, for the storms in them. */
const ofVdiskMax = 250

interface Scope {
  siteId: string
  vdiskId: string
  versionIds: string[]
  /** Speed of each edge's link, in bytes per µs. */
  links: Map<string, number>
}

interface BootJson {
  id: string
  versionId: string
  edgeId: string
  startedAt: Date
  isCold: boolean | null
  /** Only `writeBoots` writes these three, from a report that zod validated. */
  phases: { name: string; startUs: number; durationUs?: number }[]
  series: BootReport['series']
  readTimes: BootReport['readTimes'] | null
}

/** Reads boots that became ready, with what their edges recorded; those of edges without a known link are left out. */
export async function readRecordedBoots(context: ServiceContext, scope: Scope): Promise<RecordedBoot[]> {
  const { db, actor } = context
  const days = await db.bootDay.findMany({
    where: { organizationId: actor.organizationId },
    orderBy: { receivedOn: 'desc' },
    take: daysMax,
    select: { receivedOn: true },
  })
  if (days.length === 0) return []
  const read = (versionId: string | null, limit: number) =>
    readNewest(context, {
      ...scope,
      versionId,
      limit,
      days: days.map(({ receivedOn }) => receivedOn.toISOString().slice(0, 10)),
    })
  const found = [await read(null, ofVdiskMax)]
  for (const versionId of scope.versionIds) found.push(await read(versionId, ofVersionMax))
  const byId = new Map(found.flat().map((row) => [row.id, row]))
  return [...byId.values()].flatMap((row) => recordedOf(row, scope.links) ?? [])
}

function recordedOf(row: BootJson, links: Map<string, number>): RecordedBoot | null {
  const linkBytesPerUs = links.get(row.edgeId)
  if (linkBytesPerUs === undefined) return null
  const { versionId, edgeId, startedAt, phases, series } = row
  return recordedBootOf({
    versionId,
    edgeId,
    linkBytesPerUs,
    startedAtMs: startedAt.getTime(),
    isCold: row.isCold ?? false,
    phases,
    series,
    readTimes: row.readTimes ?? undefined,
  })
}

interface Newest {
  siteId: string
  vdiskId: string
  versionId: string | null
  /** `yyyy-mm-dd`. */
  days: string[]
  limit: number
}

/** The days are named: a statement without them would read every partition. */
function readNewest(
  { db, actor }: ServiceContext,
  { siteId, vdiskId, versionId, days, limit }: Newest,
): Promise<BootJson[]> {
  const ofVersion = versionId === null ? Prisma.sql`true` : Prisma.sql`version_id = ${versionId}::uuid`
  return db.$queryRaw<BootJson[]>`
    with newest as (
      select id, received_on, version_id, edge_id, started_at, is_cold, phases from boot
      where organization_id = ${actor.organizationId}::uuid and received_on = any(${days}::date[])
        and site_id = ${siteId}::uuid and vdisk_id = ${vdiskId}::uuid and ${ofVersion}
        and version_id is not null and outcome = 'ready' and not generated
      order by started_at desc, id desc limit ${limit}
    )
    select newest.id::text, newest.version_id::text as "versionId", newest.edge_id::text as "edgeId",
      newest.started_at as "startedAt", newest.is_cold as "isCold", newest.phases,
      detail.facts -> 'series' as series, detail.facts -> 'readTimes' as "readTimes"
    from newest join boot_detail as detail on detail.organization_id = ${actor.organizationId}::uuid
      and detail.boot_id = newest.id and detail.received_on = newest.received_on
    where detail.received_on = any(${days}::date[]) and detail.facts ? 'series'`
}
