import { type DbTransaction, Prisma } from '@bootfarm/db'
import { type EndedRun, emit } from '../events/event-bus.ts'
import { moveDevices } from './move-run-devices.ts'

/**
 * Ends runs. A run is done when each of its edges has reported the end, or is away, and each of its devices has a
 * result; or when its time is over. From then on its figures do not change.
 */

/** Per organization and transaction; the next time continues. */
const atOnceMax = 200
/** An edge that was not heard for this long is away: its boots are reported when it comes back. */
export const awayAfterMs = 10 * 60_000

/** Edges that a run waits for. */
const isOpen = Prisma.sql`edge.state in ('waiting', 'running')`

interface Runs {
  organizationId: string
  runIds: string[]
  now: Date
}

/** Ends what is over, and emits each run that has ended, once: the process that marks the run emits it. */
export async function endRuns(transaction: DbTransaction, organizationId: string, now: Date): Promise<void> {
  // Reports lock a run before its edges, too. One that is being reported comes next time.
  const open = await transaction.$queryRaw<{ id: string; isLate: boolean }[]>`
    select id::text, closes_at <= ${now} as "isLate" from schedule_run
    where organization_id = ${organizationId}::uuid and closed_at is null and instant <= ${now}
    order by closes_at, id limit ${atOnceMax} for update skip locked`
  const runIds = open.map(({ id }) => id)
  await declareAway(transaction, { organizationId, runIds, now })
  await settleRuns(transaction, { organizationId, runIds, now })
  await closeLate(transaction, {
    organizationId,
    runIds: open.filter(({ isLate }) => isLate).map(({ id }) => id),
    now,
  })
  await emitEnded(transaction, organizationId, now)
}

async function declareAway(transaction: DbTransaction, { organizationId, runIds, now }: Runs): Promise<void> {
  if (runIds.length === 0) return
  const heardBefore = new Date(now.getTime() - awayAfterMs)
  await transaction.$executeRaw`
    update schedule_run_edge as edge set state = 'away', changed_at = coalesce(of_site.heartbeat_at, of_site.enrolled_at)
    from edge as of_site, schedule_run as run
    where edge.organization_id = ${organizationId}::uuid and edge.run_id = any(${runIds}::uuid[]) and ${isOpen}
      and of_site.organization_id = edge.organization_id and of_site.id = edge.edge_id
      and run.organization_id = edge.organization_id and run.id = edge.run_id and run.instant <= ${heardBefore}
      and (of_site.revoked_at is not null or coalesce(of_site.heartbeat_at, of_site.enrolled_at) <= ${heardBefore})`
}

/**
 * Gives up devices of sites whose edges have all ended or are away, and ends the runs that wait for nothing more. The
 * caller has locked the runs.
 */
export async function settleRuns(transaction: DbTransaction, { organizationId, runIds, now }: Runs): Promise<void> {
  if (runIds.length === 0) return
  await moveDevices(
    transaction,
    organizationId,
    Prisma.sql`select device.run_id, device.device_id, 'not_seen'::"ScheduleRunDeviceState" as state,
        case when ended.some_away then 'edge_away' else 'not_reported' end as reason, null::text as text,
        null::uuid as edge_id, null::timestamptz as sent_at, null::uuid as boot_id
      from (select edge.run_id, edge.site_id, bool_or(edge.state = 'away') as some_away, bool_and(edge.state = 'away') as all_away
          from schedule_run_edge as edge
          where edge.organization_id = ${organizationId}::uuid and edge.run_id = any(${runIds}::uuid[])
          group by edge.run_id, edge.site_id having not bool_or(${isOpen})) as ended
      join schedule_run as run on run.organization_id = ${organizationId}::uuid and run.id = ended.run_id
        and (run.waiting_count > 0 or ended.all_away)
      join schedule_run_device as device on device.organization_id = run.organization_id and device.run_id = run.id
      join device as of_site on of_site.organization_id = device.organization_id and of_site.id = device.device_id
        and of_site.site_id = ended.site_id
      where device.state = 'waiting' or (ended.all_away and device.state in ('sent', 'booting'))`,
  )
  await transaction.$executeRaw`
    update schedule_run as run set
      state = case when run.state = 'waiting' then 'missed'::"ScheduleRunState" when run.state = 'running' then 'done' else run.state end,
      reason = case when run.state = 'waiting' then coalesce(run.reason, 'edge_away') else run.reason end,
      ended_at = coalesce(run.ended_at, ${now}),
      closed_at = case when run.state = 'waiting' then null else ${now}::timestamptz end
    where run.organization_id = ${organizationId}::uuid and run.id = any(${runIds}::uuid[]) and run.closed_at is null
      and run.state in ('waiting', 'running', 'done', 'stopped')
      and run.waiting_count + run.sent_count + run.booting_count = 0
      and not exists (select from schedule_run_edge as edge where edge.organization_id = run.organization_id
        and edge.run_id = run.id and ${isOpen})`
}

/** Their time is over: whoever has not reported by now is not waited for. */
async function closeLate(transaction: DbTransaction, { organizationId, runIds, now }: Runs): Promise<void> {
  if (runIds.length === 0) return
  await moveDevices(
    transaction,
    organizationId,
    Prisma.sql`select run_id, device_id, 'not_seen'::"ScheduleRunDeviceState" as state,
        case state when 'waiting' then 'not_reported' when 'sent' then 'no_boot' else 'not_ended' end as reason,
        null::text as text, null::uuid as edge_id, null::timestamptz as sent_at, null::uuid as boot_id
      from schedule_run_device where organization_id = ${organizationId}::uuid and run_id = any(${runIds}::uuid[])
        and state in ('waiting', 'sent', 'booting')`,
  )
  await transaction.$executeRaw`
    update schedule_run_edge as edge set state = 'not_reported', changed_at = ${now}
    where edge.organization_id = ${organizationId}::uuid and edge.run_id = any(${runIds}::uuid[]) and ${isOpen}`
  await transaction.$executeRaw`
    update schedule_run set closed_at = ${now}, ended_at = coalesce(ended_at, ${now}),
      state = case when state = 'running' then 'done'::"ScheduleRunState" when state = 'waiting' then 'missed' else state end,
      reason = case when started_at is null and reason is null and state = 'waiting' then 'not_reported' else reason end
    where organization_id = ${organizationId}::uuid and id = any(${runIds}::uuid[]) and closed_at is null`
}

async function emitEnded(db: DbTransaction, organizationId: string, now: Date): Promise<void> {
  const runs = await db.$queryRaw<EndedRun[]>`
    with ended as (
      select run.id from schedule_run as run
      where run.organization_id = ${organizationId}::uuid and run.told_at is null and run.closed_at is not null
      order by run.instant, run.id limit ${atOnceMax} for update skip locked
    )
    update schedule_run as run set told_at = ${now} from ended, schedule
    where run.organization_id = ${organizationId}::uuid and run.id = ended.id
      and schedule.organization_id = run.organization_id and schedule.id = run.schedule_id
    returning run.id::text, run.state::text, run.reason, run.instant, run.started_at, run.requested_by_user_id is not null as by_hand,
      schedule.id::text as schedule_id, schedule.name, schedule.farm_id::text, schedule.site_id::text, run.device_count,
      run.ready_count, run.failed_count, run.not_seen_count, run.skipped_count,
      (select count(*)::integer from schedule_run_device as device where device.organization_id = run.organization_id
        and device.run_id = run.id and device.sent_at is not null and device.reason is distinct from 'hook_failed') as woken_count,
      (select count(*)::integer from schedule_run_edge as edge where edge.organization_id = run.organization_id
        and edge.run_id = run.id) as edge_count,
      (select count(*)::integer from schedule_run_edge as edge where edge.organization_id = run.organization_id
        and edge.run_id = run.id and edge.state in ('away', 'not_reported')) as edges_away_count`
  await emit('runsEnded', { db, now, organizationId, runs })
}
