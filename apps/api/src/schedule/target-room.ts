import { Prisma } from '@bootfarm/db'
import { stateTargetsMax } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { devicesPerSiteMax } from '../rules/object-fields.ts'
import type { Scope } from './schedule-targets.ts'

/** A site whose schedules name more devices than its edges take. */
interface OverfullSite {
  siteId: string
  siteName: string
  /** Each device counts once for each schedule that names it. */
  namedCount: number
  limit: number
  /** Schedules that its edges do not get, because older ones use the capacity. */
  withheldScheduleIds: string[]
}

interface NamedRow {
  siteId: string
  siteName: string
  scheduleId: string
  count: number
}

/**
 * Returns the overfull sites of a farm, or one site of it. If there is capacity, the devices themselves are not read:
 * most sites are far from the limit.
 */
export async function readOverfullSites(
  db: DbOrTransaction,
  { organizationId, farmId, siteId }: Scope,
  limit = stateTargetsMax,
): Promise<OverfullSite[]> {
  const ofSite = siteId ? Prisma.sql`and site.id = ${siteId}::uuid` : Prisma.empty
  const candidates = await db.$queryRaw<{ id: string }[]>`
    select site.id::text from site where site.organization_id = ${organizationId}::uuid and site.farm_id = ${farmId}::uuid ${ofSite}
      and (select case when count(*) * ${devicesPerSiteMax} <= ${limit} then false
          else count(*) * (select count(*) from device as d where d.organization_id = site.organization_id and d.site_id = site.id)
            > ${limit} end
        from schedule as s where s.organization_id = site.organization_id and s.farm_id = site.farm_id
          and (s.site_id is null or s.site_id = site.id) and s.instants <> '{}')`
  if (candidates.length === 0) return []
  const rows = await db.$queryRaw<NamedRow[]>`
    select site.id::text as "siteId", site.name as "siteName", s.id::text as "scheduleId", count(*)::integer as "count"
    from site join schedule as s on s.organization_id = site.organization_id and s.farm_id = site.farm_id
        and (s.site_id is null or s.site_id = site.id) and s.instants <> '{}'
      join device as d on d.organization_id = site.organization_id and d.site_id = site.id
        and exists (select from schedule_target as t where t.organization_id = s.organization_id and t.schedule_id = s.id
          and (t.device_id = d.id or t.collection_id = d.collection_id or d.tags @> array[t.tag]))
    where site.organization_id = ${organizationId}::uuid and site.id = any(${candidates.map(({ id }) => id)}::uuid[])
    group by site.id, site.name, s.id, s.created_at order by site.name, site.id, s.created_at, s.id`
  const sites = Map.groupBy(rows, ({ siteId: id }) => id)
  return [...sites.values()].flatMap((named) => overfull(named, limit) ?? [])
}

/** Counts like uplink/state/site-schedules.ts: the oldest first, each completely or not at all. */
function overfull(named: NamedRow[], limit: number): OverfullSite | null {
  const [first] = named
  const namedCount = named.reduce((sum, { count }) => sum + count, 0)
  if (!first || namedCount <= limit) return null
  const withheldScheduleIds: string[] = []
  let room = limit
  for (const { scheduleId, count } of named)
    if (count > room) withheldScheduleIds.push(scheduleId)
    else room -= count
  return { siteId: first.siteId, siteName: first.siteName, namedCount, limit, withheldScheduleIds }
}

/**
 * Checks after a schedule was written, in the same transaction. If a site was over its limit before, a change that
 * names fewer devices is accepted. Throws `conflict`.
 * @param before the result of `readOverfullSites` before the change
 */
export async function requireTargetRoom(db: DbOrTransaction, scope: Scope, before: OverfullSite[] = []): Promise<void> {
  const known = new Map(before.map(({ siteId, namedCount }) => [siteId, namedCount]))
  const after = await readOverfullSites(db, scope)
  const [worst, ...others] = after.filter(({ siteId, namedCount }) => namedCount > (known.get(siteId) ?? 0))
  if (!worst) return
  const more = others.length > 0 ? ` The same applies to ${others.length} more sites.` : ''
  throw new AppError('conflict', {
    public: `With this change, the schedules of ${worst.siteName} would name ${worst.namedCount} devices in total (each device counts once per schedule), but its edges accept ${worst.limit}.${more} Name fewer devices, or disable or delete schedules that start them.`,
  })
}
