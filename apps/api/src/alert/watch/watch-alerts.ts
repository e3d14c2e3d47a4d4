import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext } from '../../context/service-context.ts'
import { type AlertMailContext, mailAlerts } from '../mail-alerts.ts'
import { failureFigures, type ObjectiveFigures } from '../schema.ts'
import { judgeBurn } from './burn-rate.ts'
import { countFailures, type FailureGroup, groupKey, readUsual } from './count-failures.ts'
import { countObjectives, type ObjectiveCounts, type WatchedObjective } from './count-objectives.ts'
import { devicesMin, failureMinutes, opens, stays, usualShareOf } from './failure-share.ts'
import {
  type AlertSubject,
  type HeldAlert,
  keepAlerts,
  type OpenAlert,
  readOpenAlerts,
  subjectKey,
} from './keep-alerts.ts'

/** The longest window, the longest time of an objective, and an hour to spare. */
const watchedMs = 8 * 3_600_000
/** An organization that takes longer has no alerts in this round, and the others have theirs. */
const organizationLimitMs = 20_000

/**
 * Evaluates the objectives and the failures of all organizations, one after the other, each in a separate transaction,
 * and mails what has opened and closed. Repeating it does no harm.
 */
export async function watchAlerts(context: PlatformContext & AlertMailContext): Promise<void> {
  const { db, clock } = context
  const since = new Date(clock().getTime() - watchedMs)
  const rows = await db.$queryRaw<{ id: string }[]>`
    select id::text from organizations_to_watch(${since}) as id order by id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      await inOrganization(db, organizationId, (tenant) => evaluate(tenant, { organizationId, now: clock() }), {
        timeoutMs: organizationLimitMs,
      })
      await mailAlerts(context, organizationId)
    },
    rows.map(({ id }) => id),
  )
}

interface Evaluation {
  organizationId: string
  now: Date
}

async function evaluate(db: DbOrTransaction, evaluation: Evaluation): Promise<void> {
  const open = await readOpenAlerts(db, evaluation.organizationId)
  const held = [...(await burning(db, evaluation, open)), ...(await failing(db, evaluation, open))]
  await keepAlerts(db, evaluation, { open, held })
}

/** Objectives that are missed by too much. Those of places in the trash are not looked at. */
async function burning(db: DbOrTransaction, evaluation: Evaluation, open: OpenAlert[]): Promise<HeldAlert[]> {
  const { organizationId } = evaluation
  const objectives = await db.objective.findMany({
    where: {
      organizationId,
      site: { deletionId: null },
      OR: [{ collectionId: null }, { collection: { deletionId: null } }],
    },
    orderBy: { placeId: 'asc' },
    select: { placeId: true, siteId: true, collectionId: true, permille: true, seconds: true, days: true },
  })
  const counted = await countObjectives(db, evaluation, objectives)
  const openKeys = new Set(open.map(subjectKey))
  return objectives.flatMap((objective) => {
    const counts = counted.get(objective.placeId)
    return counts ? burningAlert(objective, counts, openKeys) : []
  })
}

function burningAlert(
  objective: WatchedObjective,
  { counts, missedFrom, missedUntil }: ObjectiveCounts,
  openKeys: Set<string>,
): HeldAlert[] {
  const { siteId, collectionId, permille, seconds, days } = objective
  const subject: AlertSubject = { kind: 'objective', siteId, collectionId, cause: null }
  const burn = judgeBurn(counts, objective, openKeys.has(subjectKey(subject)))
  const firstAt = burn && missedFrom[burn.window]
  if (!burn || !firstAt || !missedUntil) return []
  const { boots, missed } = counts[burn.window]
  const figures: ObjectiveFigures = {
    window: burn.window,
    boots,
    missed,
    burnRate: rounded(burn.rate),
    burnLimit: rounded(burn.limit),
    percent: permille / 10,
    seconds,
    days,
  }
  return [{ ...subject, figures, firstAt, lastAt: missedUntil, bootCount: missed }]
}

/** Causes of which boots of a site fail more than usual. */
async function failing(db: DbOrTransaction, evaluation: Evaluation, open: OpenAlert[]): Promise<HeldAlert[]> {
  const groups = await countFailures(db, evaluation)
  const openBy = new Map(open.map((alert) => [subjectKey(alert), alert]))
  const candidates = groups.filter(
    (group) => group.devices >= devicesMin && !openBy.has(subjectKey(failureSubject(group))),
  )
  const usual = await readUsual(db, evaluation, candidates)
  return groups.flatMap((group) => {
    const alert = openBy.get(subjectKey(failureSubject(group)))
    const known = usual.get(groupKey(group))
    // An open alert keeps the usual share of its beginning: its own failures must not become usual.
    if (alert) {
      const silentMs = evaluation.now.getTime() - group.lastAt.getTime()
      return heldIf(group, { usualShare: usualOf(alert), silentMs })
    }
    return known ? heldIf(group, { usualShare: usualShareOf(known), silentMs: null }) : []
  })
}

function failureSubject({ siteId, cause }: Pick<FailureGroup, 'siteId' | 'cause'>): AlertSubject {
  return { kind: 'failures', siteId, collectionId: null, cause }
}

function usualOf({ figures }: OpenAlert): number {
  return failureFigures.parse(figures).usualPercent / 100
}

/** @param silentMs since the last boot, of an open alert; null: there is none */
function heldIf(
  group: FailureGroup,
  { usualShare, silentMs }: { usualShare: number; silentMs: number | null },
): HeldAlert[] {
  const { boots, devices, siteBoots, firstAt, lastAt } = group
  const counts = { boots, devices, siteBoots, usualShare }
  if (silentMs === null ? !opens(counts) : !stays(counts, silentMs)) return []
  const figures = { minutes: failureMinutes, boots, devices, siteBoots, usualPercent: rounded(100 * usualShare) }
  return [{ ...failureSubject(group), figures, firstAt: firstAt ?? lastAt, lastAt, bootCount: boots }]
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}
