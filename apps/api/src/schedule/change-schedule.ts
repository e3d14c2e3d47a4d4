import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { readSchedule } from './read-schedules.ts'
import { whenOf } from './rows.ts'
import { horizonOf } from './schedule-horizon.ts'
import type { ScheduleWhen } from './schedule-times.ts'
import type { enableScheduleInput, ScheduleDetail, scheduleChangeInput } from './schema.ts'
import { readOverfullSites, requireTargetRoom } from './target-room.ts'

interface ScheduleKey {
  organizationId: string
  scheduleId: string
}

interface LockedSchedule {
  name: string
  farmId: string
  siteId: string | null
  enabled: boolean
  when: ScheduleWhen
  timeZone: string
  instants: Date[]
}

/** Returns the row, locked. Throws `not_found`, and `conflict` if somebody else changed it meanwhile. */
export async function lockSchedule(
  transaction: DbTransaction,
  { organizationId, scheduleId }: ScheduleKey,
  revision: number | null,
): Promise<LockedSchedule> {
  await lockRow(transaction, 'schedule', { organizationId, id: scheduleId, strength: 'update' })
  const row = await transaction.schedule.findUnique({
    where: ownRow({ organizationId }, scheduleId),
    select: {
      farmId: true,
      siteId: true,
      name: true,
      enabled: true,
      kind: true,
      cron: true,
      onceAt: true,
      timeZone: true,
      instants: true,
      revision: true,
    },
  })
  if (!row) throw new AppError('not_found')
  if (revision !== null && row.revision !== revision)
    throw new AppError('conflict', {
      public: `Someone else changed this schedule in the meantime. It is now ${row.name}, ${row.enabled ? 'enabled' : 'disabled'}, revision ${row.revision}. Load the latest version to see how.`,
      extra: { revision: row.revision },
    })
  return { ...row, when: whenOf(row) }
}

/**
 * Switching it off stops its active runs. Throws `not_found`; `conflict` also if edges of a site accept no more
 * devices.
 */
export async function setScheduleEnabled(
  context: ServiceContext,
  { scheduleId, revision, enabled }: z.output<typeof enableScheduleInput>,
): Promise<ScheduleDetail> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const now = clock()
  return db.$transaction(async (transaction) => {
    const key = { organizationId, scheduleId }
    const before = await lockSchedule(transaction, key, revision)
    const was = await readSchedule(transaction, key, now)
    const known = enabled ? before.instants : []
    const scope = { organizationId, ...before }
    const overfull = await readOverfullSites(transaction, scope)
    await transaction.schedule.update({
      where: ownRow(actor, scheduleId),
      data: {
        enabled,
        ...horizonOf({ ...before, enabled, known }, now),
        // Instants that passed while it was off were no runs.
        ...(enabled && !before.enabled ? { preparedUntil: now } : {}),
        revision: { increment: 1 },
        updatedAt: now,
      },
      select: { id: true },
    })
    await requireTargetRoom(transaction, scope, overfull)
    const after = await readSchedule(transaction, key, now)
    await recordScheduleChange({ ...context, db: transaction }, was, after)
    return after
  })
}

/** Deletes the schedule with its runs; the boots stay. Throws `not_found` and `conflict`. */
export async function removeSchedule(
  context: ServiceContext,
  { scheduleId, revision }: z.output<typeof scheduleChangeInput>,
): Promise<{ removed: true }> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  return db.$transaction(async (transaction) => {
    await lockSchedule(transaction, { organizationId, scheduleId }, revision)
    const was = await readSchedule(transaction, { organizationId, scheduleId }, clock())
    await transaction.schedule.delete({ where: ownRow(actor, scheduleId) })
    await recordScheduleChange({ ...context, db: transaction }, was, null)
    return { removed: true }
  })
}

/** For the audit log: people's choices, not their consequences. */
export async function recordScheduleChange(
  context: Parameters<typeof recordChange>[0],
  before: ScheduleDetail | null,
  after: ScheduleDetail | null,
): Promise<void> {
  const one = after ?? before
  if (!one) return
  const { farmId, siteId, id, name } = one
  const place = { farmId, siteId, collectionId: null }
  await recordChange(context, {
    kind: 'schedule',
    id,
    name,
    place,
    before: before ? fieldsOf(before) : null,
    after: after ? fieldsOf(after) : null,
  })
}

function fieldsOf({ name, siteId, enabled, power, ratePerMinute, when, timeZone, targets }: ScheduleDetail) {
  return { name, siteId, enabled, power, ratePerMinute, when, timeZone, targets }
}
