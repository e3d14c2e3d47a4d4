import type { DbTransaction } from '@bootfarm/db'
import { inEachOrganization } from '../context/for-each-organization.ts'
import { ownRow, type PlatformContext, type SystemContext } from '../context/service-context.ts'
import { endRuns } from './end-runs.ts'
import { prepareRun } from './prepare-run.ts'
import { whenOf } from './rows.ts'
import { horizonOf } from './schedule-horizon.ts'

/** Per organization and transaction; the next time continues. */
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
    await endRuns(transaction, organizationId, now)
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
