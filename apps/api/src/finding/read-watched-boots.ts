import { type DbTransaction, Prisma } from '@bootfarm/db'
import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import type { Factor } from './detect/class-watch.ts'

/** A boot as findings look at it. */
export interface BootRow {
  id: string
  siteId: string
  vdiskId: string
  deviceId: string
  startedAt: Date
  outcome: BootOutcome
  totalUs: bigint
  failedPhase: string | null
  failedCause: string | null
  versionId: string | null
  /** What its edge ran; of boots from before that was kept, what it runs now. */
  release: string
  simulated: boolean
  /** As the firmware says; null: it did not. */
  clientArch: string | null
  mac: string
  segment: string | null
  /** The newest change of site, vDisk and collection before it. */
  settingId: string | null
  /** Boots of the site within half a minute of its start, counted up to `aroundMax`. */
  around: number
}

const aroundMax = 30
const severalFrom = 5
/** Without a change of settings. */
const noSetting = 'none'

const columns = Prisma.sql`boot.id::text, boot.site_id::text as "siteId", boot.vdisk_id::text as "vdiskId",
  boot.device_id::text as "deviceId", boot.started_at as "startedAt", boot.outcome::text, boot.total_us as "totalUs",
  boot.failed_phase as "failedPhase", boot.failed_cause as "failedCause", boot.version_id::text as "versionId",
  coalesce(boot.edge_release, edge.agent_version) as release, boot.simulated,
  detail.facts->>'clientArch' as "clientArch", boot.mac, boot.segment, setting.id::text as "settingId", around.count as around`

/** Changes of versions are a factor of their own. */
const joins = Prisma.sql`
  join site on site.organization_id = boot.organization_id and site.id = boot.site_id
  join edge on edge.organization_id = boot.organization_id and edge.id = boot.edge_id
  join device on device.organization_id = boot.organization_id and device.id = boot.device_id
  left join boot_detail as detail on detail.organization_id = boot.organization_id and detail.boot_id = boot.id
    and detail.received_on = boot.received_on
  left join lateral (
    select newest.id from unnest(array[boot.site_id, boot.vdisk_id, device.collection_id]) as object (id)
    cross join lateral (select entry.id, entry.at from audit_entry as entry
      where entry.organization_id = boot.organization_id and entry.object_id = object.id
        and entry.at <= boot.started_at and entry.action not like 'version.%' and entry.action not like '%.create'
      order by entry.at desc limit 1) as newest
    order by newest.at desc limit 1) as setting on true
  cross join lateral (select count(*)::int as count from (select from boot as other
    where other.organization_id = boot.organization_id and other.site_id = boot.site_id
      and other.received_on between boot.received_on - 1 and boot.received_on + 1
      and other.started_at between boot.started_at - interval '30 seconds' and boot.started_at + interval '30 seconds'
    limit ${aroundMax}) as near) as around`

/**
 * Boots that say something: they are over, of a registered device and a vDisk, and have happened. Those of experiments
 * have settings of their own.
 */
const watched = Prisma.sql`boot.outcome in ('ready', 'failed', 'silent') and not boot.generated
  and boot.vdisk_id is not null and boot.device_id is not null
  and not exists (select from experiment_trial as trial where trial.organization_id = boot.organization_id
    and trial.boot_id = boot.id)`

/**
 * Takes the next boots that were written after `change`, each once, in the order in which they were.
 * @returns null if nothing was written; the boots, and how far this has come
 */
export async function takeNextBoots(
  db: DbTransaction,
  { organizationId, change, limit }: { organizationId: string; change: bigint; limit: number },
): Promise<{ boots: BootRow[]; change: bigint } | null> {
  const keys = await db.$queryRaw<{ id: string; receivedOn: Date; change: bigint }[]>`
    select boot_id::text as id, received_on as "receivedOn", change from boot_key
    where organization_id = ${organizationId}::uuid and change > ${change} order by change limit ${limit}`
  const last = keys.at(-1)
  if (!last) return null
  const ids = keys.map(({ id }) => id)
  const days = [...new Set(keys.map(({ receivedOn }) => receivedOn.toISOString().slice(0, 10)))]
  const fresh = await db.$queryRaw<{ id: string }[]>`
    insert into watched_boot (organization_id, boot_id)
    select boot.organization_id, boot.id from boot where boot.organization_id = ${organizationId}::uuid
      and boot.id = any(${ids}::uuid[]) and boot.received_on = any(${days}::date[]) and ${watched}
    on conflict do nothing returning boot_id::text as id`
  if (fresh.length === 0) return { boots: [], change: last.change }
  const boots = await db.$queryRaw<BootRow[]>`
    select ${columns} from boot ${joins} where boot.organization_id = ${organizationId}::uuid
      and boot.id = any(${fresh.map(({ id }) => id)}::uuid[]) and boot.received_on = any(${days}::date[])`
  const placeOf = new Map(ids.map((id, place) => [id, place]))
  return { boots: boots.sort((a, b) => (placeOf.get(a.id) ?? 0) - (placeOf.get(b.id) ?? 0)), change: last.change }
}

interface Around {
  organizationId: string
  siteId: string
  vdiskId: string
  /** Only boots that started before, the newest first; or from then on, the oldest first. */
  at: Date
  side: 'before' | 'from'
  limit: number
}

/** Partitions that a statement reads, on one side. An edge that was away reports boots days after they started. */
const daysMax = 30

export async function readBootsAround(db: DbTransaction, around: Around): Promise<BootRow[]> {
  const { organizationId, siteId, vdiskId, at, side, limit } = around
  const when =
    side === 'before'
      ? Prisma.sql`boot.started_at < ${at}
          and boot.received_on between ${at}::date - ${daysMax}::int and ${at}::date + ${daysMax}::int`
      : Prisma.sql`boot.started_at >= ${at}
          and boot.received_on between ${at}::date and ${at}::date + ${daysMax}::int`
  const order = side === 'before' ? Prisma.sql`desc` : Prisma.sql`asc`
  return db.$queryRaw<BootRow[]>`
    with chosen as materialized (select * from boot where organization_id = ${organizationId}::uuid
      and site_id = ${siteId}::uuid and vdisk_id = ${vdiskId}::uuid and ${watched} and ${when}
      order by started_at ${order}, id limit ${limit})
    select ${columns} from chosen as boot ${joins} order by boot.started_at ${order}, boot.id`
}

export interface ClassKey {
  siteId: string
  vdiskId: string
  hardware: string
  load: string
}

/** What an edge knows of a machine before it boots: its architecture, and the vendor of its network card. */
export function classKeyOf({ siteId, vdiskId, clientArch, mac, simulated, around }: BootRow): ClassKey {
  const load = around < severalFrom ? 'few' : around < aroundMax ? 'several' : 'storm'
  const arch = /^\d{1,5}$/.test(clientArch ?? '') ? clientArch : 'unknown'
  return { siteId, vdiskId, hardware: simulated ? 'simulated' : `${arch} ${mac.slice(0, 8)}`, load }
}

export function classTextOf({ siteId, vdiskId, hardware, load }: ClassKey): string {
  return `${siteId} ${vdiskId} ${hardware} ${load}`
}

export function valuesOf({ versionId, release, settingId, segment }: BootRow): Record<Factor, string | null> {
  return { version: versionId, edge_release: release, setting: settingId ?? noSetting, segment }
}
