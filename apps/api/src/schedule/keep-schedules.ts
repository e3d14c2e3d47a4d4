import { type DbTransaction, Prisma } from '@bootfarm/db'
import { inEachOrganization } from '../context/for-each-organization.ts'
import { type DbOrTransaction, ownRow, type PlatformContext, type SystemContext } from '../context/service-context.ts'
import { type EndedRun, emit } from '../events/event-bus.ts'
import { giveUp } from './move-run-devices.ts'
import { prepareRun } from './prepare-run.ts'
import { whenOf } from './rows.ts'
import { horizonOf } from './schedule-horizon.ts'

/** Per organization and transaction; the next run continues. */
const atOnceMax = 200

/** For every organization separately in which something is due: most have nothing. */
export async function keepAllSchedules({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    select id::text from organizations_with_due_schedules(${clock()}) as id`
  await inEachOrganization(
    { db },
    (transaction, organizationId) => keepSchedules({ db: transaction, clock }, organizationId),
    rows.map(({ id }) => id),
  )
}

/**
 * Applies the passage of time to an organization's schedules: instants are computed further ahead, runs whose instant
 * has come get their rows, runs whose time is over are closed, and those that have ended are announced. Repeating it
 * does no harm.
 */
async function keepSchedules({ db, clock }: SystemContext, organizationId: string): Promise<void> {
  const now = clock()
  await db.$transaction(async (transaction) => {
    await renew(transaction, organizationId, now)
    await prepare(transaction, organizationId, now)
    await close(transaction, organizationId, now)
    await endRuns(transaction, organizationId, { now })
  })
}

async function renew(transaction: DbTransaction, organizationId: string, now: Date): Promise<void> {
  // Two API processes each take other rows.
  const due = await transaction.$queryRaw<{ id: string }[]>`
    select id from schedule where organization_id = ${organizationId}::uuid and renew_at <= ${now}
    order by renew_at, id limit ${atOnceMax} for update skip locked`
  const rows = await transaction.schedule.findMany({
    where: { organizationId, id: { in: due.map(({ id }) => id) } },
    select: {
      id: true,
      enabled: true,
      kind: true,
      cron: true,
      onceAt: true,
      timeZone: true,
      instants: true,
      runs: { where: { closedAt: null }, take: atOnceMax, select: { instant: true } },
    },
  })
  for (const { id, instants, runs, ...row } of rows) {
    const open = runs.map(({ instant }) => instant)
    const horizon = horizonOf({ ...row, when: whenOf(row), known: instants, open }, now)
    await transaction.schedule.update({
      where: ownRow({ organizationId }, id),
      data: horizon,
      select: { id: true },
    })
  }
}

async function prepare(transaction: DbTransaction, organizationId: string, now: Date): Promise<void> {
  const due = await transaction.$queryRaw<{ id: string; instant: Date }[]>`
    select schedule.id, instant from schedule, unnest(instants) as instant
    where organization_id = ${organizationId}::uuid and instant > prepared_until and instant <= ${now}
    order by instant, schedule.id limit ${atOnceMax}`
  for (const { id: scheduleId, instant } of due) {
    await prepareRun(transaction, { organizationId, scheduleId, instant }, { now })
    await transaction.$executeRaw`update schedule set prepared_until = greatest(prepared_until, ${instant})
      where organization_id = ${organizationId}::uuid and id = ${scheduleId}::uuid`
  }
}

async function close(transaction: DbTransaction, organizationId: string, now: Date): Promise<void> {
  const due = await transaction.scheduleRun.findMany({
    where: { organizationId, closedAt: null, closesAt: { lte: now } },
    orderBy: [{ closesAt: 'asc' }, { id: 'asc' }],
    take: atOnceMax,
    select: { id: true, startedAt: true },
  })
  for (const { id: runId, startedAt } of due) {
    const end = { runId, state: 'not_seen' as const }
    await giveUp(transaction, organizationId, { ...end, from: ['waiting'], reason: 'not_reported' })
    await giveUp(transaction, organizationId, { ...end, from: ['sent'], reason: 'no_boot' })
    await transaction.$executeRaw`
      update schedule_run set closed_at = ${now}, ended_at = coalesce(ended_at, ${now}),
        state = case when state = 'running' then 'done'::"ScheduleRunState" when state = 'waiting' then 'missed' else state end,
        reason = case when ${startedAt}::timestamptz is null and reason is null and state = 'waiting' then 'not_reported' else reason end
      where organization_id = ${organizationId}::uuid and id = ${runId}::uuid`
  }
}

/** Handles one organization in one transaction; the next run continues. */

/**
 * No edge will report more about such a run: each device has been skipped or its boot is over, or the time for missing
 * reports is over. A device that one edge has missed may have been started by another, which reports it later: such a
 * run waits for its end.
 */
const isOver = Prisma.sql`(run.closed_at is not null or (run.state in ('done', 'stopped')
  and run.waiting_count + run.sent_count + run.booting_count = 0
  and (run.not_seen_count = 0 or not exists (select from schedule_run_device as device
    where device.organization_id = run.organization_id and device.run_id = run.id and device.state = 'not_seen'
      and device.reason is distinct from 'no_answer'))))`

/** Emits each run of a schedule that has ended, once: the process that marks the run emits it. */
async function endRuns(db: DbOrTransaction, organizationId: string, { now }: { now: Date }): Promise<void> {
  const runs = await db.$queryRaw<EndedRun[]>`
    with ended as (
      select run.id from schedule_run as run
      where run.organization_id = ${organizationId}::uuid and run.told_at is null and ${isOver}
      order by run.instant, run.id limit ${atOnceMax} for update skip locked
    )
    update schedule_run as run set told_at = ${now} from ended, schedule
    where run.organization_id = ${organizationId}::uuid and run.id = ended.id
      and schedule.organization_id = run.organization_id and schedule.id = run.schedule_id
    returning run.id::text, run.state::text, run.reason, run.instant, run.started_at, run.requested_by_user_id is not null as by_hand,
      schedule.id::text as schedule_id, schedule.name, schedule.farm_id::text, schedule.site_id::text, run.device_count,
      run.ready_count, run.failed_count, run.not_seen_count, run.skipped_count,
      (select count(*)::integer from schedule_run_device as device where device.organization_id = run.organization_id
        and device.run_id = run.id and device.sent_at is not null and device.reason is distinct from 'hook_failed') as woken_count`
  await emit('runsEnded', { db, now, organizationId, runs })
}
