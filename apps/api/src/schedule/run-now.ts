import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { lockSchedule } from './change-schedule.ts'
import { prepareRun } from './prepare-run.ts'
import { horizonOf } from './schedule-horizon.ts'
import type { runNowInput } from './schema.ts'
import { readOverfullSites, requireTargetRoom } from './target-room.ts'

/** Runs of a schedule by hand, within the time that edges know them. */
const byHandMax = 20
const byHandWithinMs = 60 * 60_000

/**
 * Starts a run at once, also of a schedule that is switched off; its edges learn it within a second. Throws
 * `not_found`, `conflict`.
 */
export async function runScheduleNow(
  context: ServiceContext,
  { scheduleId, traceparent }: z.infer<typeof runNowInput>,
): Promise<{ runId: string }> {
  const {
    db,
    clock,
    actor: { organizationId, userId },
  } = context
  const now = clock()
  return db.$transaction(async (transaction) => {
    const schedule = await lockSchedule(transaction, { organizationId, scheduleId }, null)
    const recent = await transaction.scheduleRun.count({
      where: {
        organizationId,
        scheduleId,
        requestedByUserId: { not: null },
        instant: { gt: new Date(now.getTime() - byHandWithinMs) },
      },
    })
    if (recent >= byHandMax)
      throw new AppError('conflict', {
        public: `This schedule was already started manually ${byHandMax} times in the last hour.`,
      })
    const edges = await transaction.edge.count({
      where: {
        organizationId,
        revokedAt: null,
        ...(schedule.siteId ? { siteId: schedule.siteId } : { site: { farmId: schedule.farmId } }),
      },
    })
    if (edges === 0) throw new AppError('conflict', { public: 'No edge could start the devices there.' })
    // No instant twice: it identifies a run.
    const instant = new Date(now)
    // It is what a run is known by.
    while (schedule.instants.some((at) => at.getTime() === instant.getTime())) instant.setTime(instant.getTime() + 1)
    const runId = await prepareRun(
      transaction,
      { organizationId, scheduleId, instant },
      { now, requestedByUserId: userId, traceparent },
    )
    if (!runId) throw new AppError('not_found')
    const scope = { organizationId, ...schedule }
    const overfull = await readOverfullSites(transaction, scope)
    await transaction.schedule.update({
      where: ownRow({ organizationId }, scheduleId),
      data: horizonOf({ ...schedule, known: [...schedule.instants, instant] }, instant),
      select: { id: true },
    })
    await requireTargetRoom(transaction, scope, overfull)
    await recordChange(context, {
      kind: 'schedule',
      id: scheduleId,
      name: schedule.name,
      before: { runId: null },
      after: { runId, instant },
    })
    return { runId }
  })
}
