import type { DbTransaction } from '@bootfarm/db'
import { inEachOrganization } from '../context/for-each-organization.ts'
import { ownRow } from '../context/own-row.ts'
import type { PlatformContext, SystemContext } from '../context/service-context.ts'
import { endRuns } from './end-runs.ts'
import { giveUp } from './move-run-devices.ts'
import { prepareRun } from './prepare-run.ts'
import { whenOf } from './rows.ts'
import { horizonOf } from './schedule-horizon.ts'

/** Of one organization in one go; the next time goes on. */
const atOnceMax = 200

/** For every organization, each by itself. */
export async function keepAllSchedules({ db, clock }: PlatformContext): Promise<void> {
  await inEachOrganization({ db }, (transaction, organizationId) =>
    keepSchedules({ db: transaction, clock }, organizationId),
  )
}

/**
 * What time alone does to an organization's schedules: instants are worked out further ahead, runs whose instant has
 * come get their rows, runs whose time is over are closed, and those that have ended are told. Done twice it does no
 * harm.
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
