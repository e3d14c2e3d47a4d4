import { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../../context/service-context.ts'
import { dayText } from '../../rules/utc-day.ts'
import { failureMinutes } from './failure-share.ts'

/** Boots of a place that failed of one cause in the last minutes. */
export interface FailureGroup {
  siteId: string
  /** Null: of devices that are in none. */
  collectionId: string | null
  /** A cause of boot-phases.json, or `silent`. */
  cause: string
  boots: number
  devices: number
  /** All boots of the place in these minutes. */
  placeBoots: number
  siteBoots: number
  firstAt: Date | null
  /** The last failed boot of the hours that are read. */
  lastAt: Date
}

const hourMs = 3_600_000
/** Hours that are counted again: reports of their boots may be late. */
const hoursRead = 2
/** More failed boots of one organization in these hours: the oldest are not looked at. */
const bootsReadMax = 100_000
/** Groups of one organization; the largest of the last minutes come first. */
const groupsMax = 5_000

/**
 * Counts failed boots by site, collection and cause, also by hour. Boots of devices without an answer (`no_response`)
 * are not among them: most are machines that are switched off at the wall.
 */
export async function countFailures(
  db: DbOrTransaction,
  { organizationId, now }: { organizationId: string; now: Date },
): Promise<FailureGroup[]> {
  const since = new Date((Math.floor(now.getTime() / hourMs) - hoursRead + 1) * hourMs)
  const lately = new Date(now.getTime() - failureMinutes * 60_000)
  return db.$queryRaw<FailureGroup[]>`
    with recent as materialized (
      select failed.*, device.collection_id from (
        select site_id, case outcome when 'silent' then 'silent' else failed_cause end as cause, device_id,
          coalesce(device_id::text, mac) as device, started_at
        from boot where organization_id = ${organizationId}::uuid and received_on >= ${dayText(since)}::date
          and outcome in ('failed', 'silent') and started_at >= ${since} and started_at <= ${now} and not generated
          and (outcome = 'silent' or failed_cause is not null)
          and site_id in (select id from site where site.organization_id = ${organizationId}::uuid)
        order by started_at desc limit ${bootsReadMax}
      ) as failed left join device on device.organization_id = ${organizationId}::uuid
        and device.id = failed.device_id and device.site_id = failed.site_id
    ), kept as (
      insert into cause_hour as kept (organization_id, site_id, cause, hour, boots)
      select ${organizationId}::uuid, site_id, cause, ${hourOf}, count(*) from recent group by 1, 2, 3, 4
      on conflict (organization_id, site_id, cause, hour) do update set boots = excluded.boots
      where excluded.boots > kept.boots
    ), kept_of_collections as (
      insert into collection_cause_hour as kept (organization_id, collection_id, cause, hour, boots)
      select ${organizationId}::uuid, collection_id, cause, ${hourOf}, count(*) from recent
      where collection_id is not null group by 1, 2, 3, 4
      on conflict (organization_id, collection_id, cause, hour) do update set boots = excluded.boots
      where excluded.boots > kept.boots
    ), place_boots as materialized (
      select boot.site_id, device.collection_id, count(*)::int as boots from boot
      left join device on device.organization_id = ${organizationId}::uuid and device.id = boot.device_id
        and device.site_id = boot.site_id
      where boot.organization_id = ${organizationId}::uuid and boot.received_on >= ${dayText(lately)}::date
        and boot.started_at > ${lately} and boot.started_at <= ${now} and not boot.generated
        and (boot.outcome is null or boot.outcome <> 'no_response')
        and boot.site_id in (select site_id from recent)
      group by 1, 2
    ), site_boots as (select site_id, sum(boots)::int as boots from place_boots group by 1)
    select recent.site_id::text as "siteId", recent.collection_id::text as "collectionId", recent.cause,
      (count(*) filter (where recent.started_at > ${lately}))::int as boots,
      (count(distinct device) filter (where recent.started_at > ${lately}))::int as devices,
      coalesce(max(place_boots.boots), 0) as "placeBoots", coalesce(max(site_boots.boots), 0) as "siteBoots",
      min(recent.started_at) filter (where recent.started_at > ${lately}) as "firstAt",
      max(recent.started_at) as "lastAt"
    from recent left join site_boots on site_boots.site_id = recent.site_id
      left join place_boots on place_boots.site_id = recent.site_id
        and coalesce(place_boots.collection_id, place_boots.site_id) = coalesce(recent.collection_id, recent.site_id)
    group by recent.site_id, recent.collection_id, recent.cause
    order by boots desc, recent.site_id, recent.collection_id, recent.cause limit ${groupsMax}`
}

/** Of a boot's start. */
const hourOf = Prisma.sql`date_bin('1 hour', started_at, '2000-01-01 00:00:00+00')`

interface Place {
  siteId: string
  collectionId: string | null
  cause: string
}

/** A place and a cause; the key of what is usual. */
export function groupKey({ siteId, collectionId, cause }: Place): string {
  return `${siteId} ${collectionId} ${cause}`
}

const usualDays = 7

/**
 * Reads how many boots of these places failed of these causes in the week before the last hour, and how many boots
 * there were. It begins with the first hour in which failures of the organization were counted. Sums of boots are kept
 * by site: a collection is taken to have the part of them that it has of the site's devices.
 */
export async function readUsual(
  db: DbOrTransaction,
  { organizationId, now }: { organizationId: string; now: Date },
  places: Place[],
): Promise<Map<string, { failed: number; boots: number }>> {
  if (places.length === 0) return new Map()
  const until = new Date((Math.floor(now.getTime() / hourMs) - 1) * hourMs)
  const since = new Date(until.getTime() - usualDays * 24 * hourMs)
  const wanted = places.map(({ siteId, collectionId, cause }) => ({
    site_id: siteId,
    collection_id: collectionId,
    cause,
  }))
  const rows = await db.$queryRaw<(Place & { failed: number; boots: number })[]>`
    with wanted as materialized (
      select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as row (site_id uuid, collection_id uuid, cause text)
    ), counted as materialized (
      select greatest(${since}::timestamptz, (select min(hour) from cause_hour
          where organization_id = ${organizationId}::uuid)) as since_of_sites,
        greatest(${since}::timestamptz, (select min(hour) from collection_cause_hour
          where organization_id = ${organizationId}::uuid)) as since_of_collections
    ), site_boots as materialized (
      select site_id, sum(boots) filter (where starts_at >= since_of_sites) as of_sites,
        sum(boots) filter (where starts_at >= since_of_collections) as of_collections
      from counted, lateral (select site_id, starts_at, booting_count + ready_count + failed_count + silent_count
          + superseded_count + local_disk_count - generated_count as boots
        from boot_rollup where organization_id = ${organizationId}::uuid and grain = 'hour'
          and starts_at >= least(since_of_sites, since_of_collections) and starts_at < ${until}
          and site_id in (select site_id from wanted)) as hours
      group by site_id
    ), devices as materialized (
      select site_id, collection_id, count(*) as devices from device where organization_id = ${organizationId}::uuid
        and site_id in (select site_id from wanted where collection_id is not null) group by 1, 2
    ), site_devices as (select site_id, sum(devices) as devices from devices group by 1)
    select wanted.site_id::text as "siteId", wanted.collection_id::text as "collectionId", wanted.cause,
      (case when wanted.collection_id is null then ${failedSql('site', { organizationId, since, until })}
        else ${failedSql('collection', { organizationId, since, until })} end)::int as failed,
      greatest(0, coalesce(case when wanted.collection_id is null then of_sites
        else of_collections * devices.devices / site_devices.devices end, 0))::int as boots
    from wanted left join site_boots on site_boots.site_id = wanted.site_id
      left join devices on devices.site_id = wanted.site_id and devices.collection_id = wanted.collection_id
      left join site_devices on site_devices.site_id = wanted.site_id`
  return new Map(rows.map(({ failed, boots, ...place }) => [groupKey(place), { failed, boots }]))
}

function failedSql(
  kind: 'site' | 'collection',
  { organizationId, since, until }: { organizationId: string; since: Date; until: Date },
): Prisma.Sql {
  const [table, place] =
    kind === 'site'
      ? [Prisma.sql`cause_hour`, Prisma.sql`site_id`]
      : [Prisma.sql`collection_cause_hour`, Prisma.sql`collection_id`]
  return Prisma.sql`coalesce((select sum(hours.boots) from ${table} as hours
    where hours.organization_id = ${organizationId}::uuid and hours.${place} = wanted.${place}
      and hours.cause = wanted.cause and hours.hour >= ${since} and hours.hour < ${until}), 0)`
}
