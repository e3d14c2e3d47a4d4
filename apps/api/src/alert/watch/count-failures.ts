import type { DbOrTransaction } from '../../context/service-context.ts'
import { dayText } from '../../rules/utc-day.ts'
import { failureMinutes } from './failure-share.ts'

/** Boots of a site that failed of one cause in the last minutes. */
export interface FailureGroup {
  siteId: string
  /** A cause of boot-phases.json, or `silent`. */
  cause: string
  boots: number
  devices: number
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
const groupsMax = 2_000

/**
 * Counts failed boots by site and cause, also by hour. Boots of devices without an answer (`no_response`) are not among
 * them: most are machines that are switched off at the wall.
 */
export async function countFailures(
  db: DbOrTransaction,
  { organizationId, now }: { organizationId: string; now: Date },
): Promise<FailureGroup[]> {
  const since = new Date((Math.floor(now.getTime() / hourMs) - hoursRead + 1) * hourMs)
  const lately = new Date(now.getTime() - failureMinutes * 60_000)
  return db.$queryRaw<FailureGroup[]>`
    with recent as materialized (
      select site_id, case outcome when 'silent' then 'silent' else failed_cause end as cause,
        coalesce(device_id::text, mac) as device, started_at
      from boot where organization_id = ${organizationId}::uuid and received_on >= ${dayText(since)}::date
        and outcome in ('failed', 'silent') and started_at >= ${since} and started_at <= ${now} and not generated
        and (outcome = 'silent' or failed_cause is not null)
        and site_id in (select id from site where site.organization_id = ${organizationId}::uuid)
      order by started_at desc limit ${bootsReadMax}
    ), kept as (
      insert into cause_hour as kept (organization_id, site_id, cause, hour, boots)
      select ${organizationId}::uuid, site_id, cause, date_bin('1 hour', started_at, '2000-01-01 00:00:00+00'), count(*)
      from recent group by 1, 2, 3, 4
      on conflict (organization_id, site_id, cause, hour) do update set boots = excluded.boots
      where excluded.boots > kept.boots
    ), site_boots as (
      select site_id, count(*)::int as boots from boot
      where organization_id = ${organizationId}::uuid and received_on >= ${dayText(lately)}::date
        and started_at > ${lately} and started_at <= ${now} and not generated
        and (outcome is null or outcome <> 'no_response')
        and site_id in (select site_id from recent)
      group by site_id
    )
    select recent.site_id::text as "siteId", recent.cause,
      (count(*) filter (where recent.started_at > ${lately}))::int as boots,
      (count(distinct device) filter (where recent.started_at > ${lately}))::int as devices,
      coalesce(max(site_boots.boots), 0) as "siteBoots",
      min(recent.started_at) filter (where recent.started_at > ${lately}) as "firstAt",
      max(recent.started_at) as "lastAt"
    from recent left join site_boots on site_boots.site_id = recent.site_id
    group by recent.site_id, recent.cause
    order by boots desc, recent.site_id, recent.cause limit ${groupsMax}`
}

/** A site and a cause; the key of what is usual. */
export function groupKey({ siteId, cause }: { siteId: string; cause: string }): string {
  return `${siteId} ${cause}`
}

const usualDays = 7

/**
 * Reads how many boots of these sites failed of these causes in the week before the last hour, and how many boots there
 * were. It begins with the first hour in which failures of the organization were counted.
 */
export async function readUsual(
  db: DbOrTransaction,
  { organizationId, now }: { organizationId: string; now: Date },
  groups: { siteId: string; cause: string }[],
): Promise<Map<string, { failed: number; boots: number }>> {
  if (groups.length === 0) return new Map()
  const until = new Date((Math.floor(now.getTime() / hourMs) - 1) * hourMs)
  const since = new Date(until.getTime() - usualDays * 24 * hourMs)
  const wanted = groups.map(({ siteId, cause }) => ({ site_id: siteId, cause }))
  const rows = await db.$queryRaw<{ siteId: string; cause: string; failed: number; boots: number }[]>`
    with wanted as (
      select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as row (site_id uuid, cause text)
    ), counted as (
      select greatest(${since}::timestamptz, min(hour)) as since from cause_hour
      where organization_id = ${organizationId}::uuid
    ), site_boots as (
      select site_id, sum(booting_count + ready_count + failed_count + silent_count + superseded_count
        + local_disk_count - generated_count)::int as boots
      from boot_rollup where organization_id = ${organizationId}::uuid and grain = 'hour'
        and starts_at >= (select since from counted) and starts_at < ${until}
        and site_id in (select site_id from wanted)
      group by site_id
    )
    select wanted.site_id::text as "siteId", wanted.cause, greatest(0, coalesce(site_boots.boots, 0)) as boots,
      coalesce((select sum(hours.boots) from cause_hour as hours where hours.organization_id = ${organizationId}::uuid
        and hours.site_id = wanted.site_id and hours.cause = wanted.cause and hours.hour >= ${since}
        and hours.hour < ${until}), 0)::int as failed
    from wanted left join site_boots on site_boots.site_id = wanted.site_id`
  return new Map(rows.map(({ failed, boots, ...group }) => [groupKey(group), { failed, boots }]))
}
