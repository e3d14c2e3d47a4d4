import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { lockSchedule, recordScheduleChange } from './change-schedule.ts'
import { readSchedule } from './read-schedules.ts'
import { horizonOf } from './schedule-horizon.ts'
import {
  cannotStart,
  placeOf,
  requireScope,
  requireTargets,
  type Scope,
  targetFilter,
  targetRows,
} from './schedule-targets.ts'
import { instantsAfter, localText, plannedInstants } from './schedule-times.ts'
import {
  type createScheduleInput,
  type previewInput,
  type ScheduleDetail,
  type ScheduleFields,
  type schedulePreview,
  schedulesPerFarmMax,
  type updateScheduleInput,
} from './schema.ts'
import { readOverfullSites, requireTargetRoom } from './target-room.ts'

/**
 * Throws `not_found` for the farm and its site; `invalid` for a target that they do not have and for a time that has
 * passed; `conflict` for a taken name, too many schedules, or more devices than the edges of a site take.
 */
export async function createSchedule(
  context: ServiceContext,
  { farmId, enabled, ...fields }: z.output<typeof createScheduleInput>,
): Promise<ScheduleDetail> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const now = clock()
  return db.$transaction(async (transaction) => {
    // Locked, so that two at once neither take one name nor pass the limit.
    await lockRow(transaction, 'farm', { organizationId, id: farmId, strength: 'update' })
    const place = { farmId, siteId: fields.siteId, permission: 'schedule.change' as const }
    const scope = await requireScope(transaction, actor, place)
    await requireFields(transaction, scope, { fields, now })
    if ((await transaction.schedule.count({ where: { organizationId, farmId } })) >= schedulesPerFarmMax)
      throw new AppError('conflict', { public: `A farm can have at most ${schedulesPerFarmMax} schedules.` })
    const { id: scheduleId } = await transaction.schedule.create({
      data: {
        organizationId,
        farmId,
        enabled,
        ...columnsOf(fields),
        ...horizonOf({ enabled, ...fields, known: [] }, now),
        preparedUntil: now,
        createdAt: now,
        updatedAt: now,
        targets: { create: targetRows(fields.targets) },
      },
      select: { id: true },
    })
    await requireTargetRoom(transaction, scope)
    const after = await readSchedule(transaction, { organizationId, scheduleId }, now)
    await recordScheduleChange({ ...context, db: transaction }, null, after)
    return after
  })
}

/** Like `createSchedule`; `conflict` also if somebody else changed it meanwhile. */
export async function updateSchedule(
  context: ServiceContext,
  { scheduleId, revision, ...fields }: z.output<typeof updateScheduleInput>,
): Promise<ScheduleDetail> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const now = clock()
  return db.$transaction(async (transaction) => {
    const key = { organizationId, scheduleId }
    const before = await lockSchedule(transaction, key, revision)
    const place = { farmId: before.farmId, siteId: fields.siteId, permission: 'schedule.change' as const }
    const scope = await requireScope(transaction, actor, place)
    const was = await readSchedule(transaction, key, now)
    const isSameTime =
      before.timeZone === fields.timeZone && JSON.stringify(before.when) === JSON.stringify(fields.when)
    await requireFields(transaction, scope, { fields, now, scheduleId, mayHavePassed: isSameTime })
    const overfull = await readOverfullSites(transaction, scope)
    await transaction.scheduleTarget.deleteMany({ where: { organizationId, scheduleId } })
    await transaction.schedule.update({
      where: ownRow(actor, scheduleId),
      data: {
        ...columnsOf(fields),
        ...horizonOf({ enabled: before.enabled, ...fields, known: before.instants }, now),
        revision: { increment: 1 },
        updatedAt: now,
        targets: { create: targetRows(fields.targets) },
      },
      select: { id: true },
    })
    await requireTargetRoom(transaction, scope, overfull)
    const after = await readSchedule(transaction, key, now)
    await recordScheduleChange({ ...context, db: transaction }, was, after)
    return after
  })
}

function columnsOf({ name, siteId, power, ratePerMinute, when, timeZone }: ScheduleFields) {
  const [onceAt] = when.kind === 'once' ? instantsAfter({ when, timeZone }, new Date(0), 1) : []
  return {
    name,
    siteId,
    power,
    ratePerMinute,
    timeZone,
    kind: when.kind,
    onceAt: onceAt ?? null,
    cron: when.kind === 'cron' ? when.expression : null,
  }
}

interface Wanted {
  fields: ScheduleFields
  now: Date
  scheduleId?: string
  /** A schedule that is over can get another name. */
  mayHavePassed?: boolean
}

async function requireFields(
  transaction: DbTransaction,
  scope: Scope,
  { fields, now, scheduleId, mayHavePassed = false }: Wanted,
): Promise<void> {
  const { organizationId, farmId } = scope
  await requireTargets(transaction, scope, fields.targets)
  if (!mayHavePassed && instantsAfter(fields, now, 1).length === 0)
    throw new AppError('invalid', { public: 'This time has passed.' })
  const taken = await transaction.schedule.findUnique({
    where: { organizationId_farmId_name: { organizationId, farmId, name: fields.name } },
    select: { id: true },
  })
  if (taken && taken.id !== scheduleId)
    throw new AppError('conflict', { public: `This farm already has a schedule named ${fields.name}.` })
}

const instantsShown = 10

/** Previews a schedule; targets that the place does not have count as none. Throws `not_found` for the farm or site. */
export async function previewSchedule(
  { db, clock, actor }: ServiceContext,
  { farmId, siteId, when, timeZone, targets }: z.output<typeof previewInput>,
): Promise<z.infer<typeof schedulePreview>> {
  const now = clock()
  const scope = await requireScope(db, actor, { farmId, siteId, permission: 'schedule.read' })
  const place = { organizationId: scope.organizationId, ...placeOf(scope) }
  const where = { AND: [place, targetFilter(targets)] }
  const deviceCount = await db.device.count({ where })
  const skippedCount = await db.device.count({ where: { AND: [where, cannotStart] } })
  const { instants } = horizonOf({ enabled: true, when, timeZone, known: [] }, now)
  return {
    instants: plannedInstants({ when, timeZone }, now, instantsShown).map(({ at, note }) => ({
      at: at.toISOString(),
      local: localText(at, timeZone),
      note,
    })),
    deviceCount,
    skippedCount,
    knownUntil: instants.at(-1)?.toISOString() ?? null,
  }
}
