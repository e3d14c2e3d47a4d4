import { type DbTransaction, Prisma } from '@bootfarm/db'
import { ownRow } from '../context/service-context.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'
import { bootWindowMs, latenessMs } from './schedule-horizon.ts'
import { storedTargetSql } from './schedule-targets.ts'

interface RunKey {
  organizationId: string
  scheduleId: string
  instant: Date
}

interface Preparation {
  now: Date
  /** Left out where the run's time has come. */
  requestedByUserId?: string | null
  /** The caller's span. */
  traceparent?: string | null | undefined
}

/** Per schedule; the oldest are dropped first. */
const runsKeptMax = 1000

/** For edges that are away: their reports still count when they arrive later. */
const patienceMs = 30 * 60_000

/**
 * The run's row, made with a row for each of the schedule's devices where there is none yet. The devices are those of
 * this moment.
 * Records a run whose time has come.
 * @returns null where there is no such schedule
 */
export async function prepareRun(
  transaction: DbTransaction,
  { organizationId, scheduleId, instant }: RunKey,
  { now, requestedByUserId, traceparent = null }: Preparation,
): Promise<string | null> {
  const key = { organizationId_scheduleId_instant: { organizationId, scheduleId, instant } }
  const known = await transaction.scheduleRun.findUnique({ where: key, select: { id: true } })
  if (known) return known.id
  const schedule = await transaction.schedule.findUnique({
    where: ownRow({ organizationId }, scheduleId),
    select: { name: true, farmId: true, siteId: true, action: true, power: true, ratePerMinute: true },
  })
  if (!schedule) return null
  const { name, farmId, siteId, ...carried } = schedule
  const [made] = await transaction.$queryRaw<{ id: string }[]>`
    insert into schedule_run (organization_id, id, schedule_id, instant, requested_by_user_id, action, power, rate_per_minute,
      closes_at, device_count, created_at, traceparent)
    values (${organizationId}::uuid, gen_random_uuid(), ${scheduleId}::uuid, ${instant}, ${requestedByUserId ?? null}::uuid,
      ${carried.action}::"ScheduleAction", ${carried.power}::"SchedulePower", ${carried.ratePerMinute}, ${instant}, 0, ${now}, ${traceparent})
    on conflict do nothing returning id`
  // Another edge's report was first.
  if (!made) return (await transaction.scheduleRun.findUnique({ where: key, select: { id: true } }))?.id ?? null
  await addDevices(transaction, made.id, { organizationId, scheduleId, farmId, siteId })
  await addEdges(transaction, { organizationId, runId: made.id, now })
  if (requestedByUserId === undefined)
    await recordDoings({ db: transaction, now }, jobDoer(organizationId, 'schedules'), [
      {
        action: 'schedule.beginRun',
        kind: 'schedule',
        id: scheduleId,
        name,
        place: { farmId, siteId, collectionId: null },
        before: { runId: null },
        after: { runId: made.id, instant },
      },
    ])
  const windowMs = latenessMs + bootWindowMs + patienceMs
  await transaction.$executeRaw`
    update schedule_run set device_count = counted.all_devices, waiting_count = counted.all_devices - counted.skipped,
      skipped_count = counted.skipped,
      closes_at = greatest(${instant}::timestamptz, ${now}::timestamptz) + make_interval(secs => ${windowMs / 1000}
        + counted.all_devices * 60.0 / rate_per_minute),
      state = case when counted.all_devices = counted.skipped then 'done'::"ScheduleRunState" else state end,
      closed_at = case when counted.all_devices = counted.skipped then ${now}::timestamptz end,
      ended_at = case when counted.all_devices = counted.skipped then ${now}::timestamptz end
    from (select count(*)::integer as all_devices, (count(*) filter (where state = 'skipped'))::integer as skipped
      from schedule_run_device where organization_id = ${organizationId}::uuid and run_id = ${made.id}::uuid) as counted
    where organization_id = ${organizationId}::uuid and id = ${made.id}::uuid`
  await transaction.$executeRaw`delete from schedule_run where organization_id = ${organizationId}::uuid and id in
    (select id from schedule_run where organization_id = ${organizationId}::uuid and schedule_id = ${scheduleId}::uuid
      order by instant desc offset ${runsKeptMax})`
  return made.id
}

/** In the order of the edges: by name, each site separately. */
async function addDevices(
  transaction: DbTransaction,
  runId: string,
  scope: { organizationId: string; scheduleId: string; farmId: string; siteId: string | null },
): Promise<void> {
  const { organizationId, scheduleId, farmId, siteId } = scope
  const place = siteId
    ? Prisma.sql`d.site_id = ${siteId}::uuid`
    : Prisma.sql`d.site_id in (select id from site where organization_id = ${organizationId}::uuid and farm_id = ${farmId}::uuid)`
  await transaction.$executeRaw`
    insert into schedule_run_device (organization_id, run_id, device_id, position, state, reason)
    select d.organization_id, ${runId}::uuid, d.id, row_number() over (order by d.site_id, d.name, d.id) - 1,
      case when d.why is null then 'waiting' else 'skipped' end::"ScheduleRunDeviceState", d.why
    from (select d.organization_id, d.id, d.site_id, d.name, case when not d.enabled then 'disabled'
        when d.vdisk_id is null and c.vdisk_id is null and c.boot_menu_id is null and (d.boot_menu_choice <> 'own' or d.boot_menu_id is null)
          then 'nothing_to_boot' end as why
      from device d join collection c on c.organization_id = d.organization_id and c.id = d.collection_id
      where d.organization_id = ${organizationId}::uuid and ${place} and ${storedTargetSql(organizationId, scheduleId)}) as d`
}

/** The edges of the sites whose devices it starts: each of them follows the run, and reports its end. */
async function addEdges(
  transaction: DbTransaction,
  { organizationId, runId, now }: { organizationId: string; runId: string; now: Date },
): Promise<void> {
  await transaction.$executeRaw`
    insert into schedule_run_edge (organization_id, run_id, edge_id, site_id, changed_at)
    select organization_id, ${runId}::uuid, id, site_id, ${now} from edge
    where organization_id = ${organizationId}::uuid and revoked_at is null and site_id in (
      select device.site_id from schedule_run_device as of_run
      join device on device.organization_id = of_run.organization_id and device.id = of_run.device_id
      where of_run.organization_id = ${organizationId}::uuid and of_run.run_id = ${runId}::uuid and of_run.state = 'waiting')`
}
