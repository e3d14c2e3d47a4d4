import { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../context/service-context.ts'
import { type EndedRun, emit } from '../events/event-bus.ts'

/** Of one organization in one go; the next time goes on. */
const atOnceMax = 200

/**
 * Nothing more is to come of such a run from any edge: each device has been passed over or its boot is over, or the
 * time for what was not heard of is. A device that one edge has missed may have been started by another, which tells of
 * it later: such a run waits for its end.
 */
const isOver = Prisma.sql`(run.closed_at is not null or (run.state in ('done', 'stopped')
  and run.waiting_count + run.sent_count + run.booting_count = 0
  and (run.not_seen_count = 0 or not exists (select from schedule_run_device as device
    where device.organization_id = run.organization_id and device.run_id = run.id and device.state = 'not_seen'
      and device.reason is distinct from 'no_answer'))))`

/** Emits each run of a schedule that has ended, once: the process that marks the run emits it. */
export async function endRuns(db: DbOrTransaction, organizationId: string, { now }: { now: Date }): Promise<void> {
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
