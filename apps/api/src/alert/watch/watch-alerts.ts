import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext } from '../../context/service-context.ts'
import { type AlertMailContext, mailAlerts } from '../mail-alerts.ts'
import { failureFigures, type ObjectiveFigures } from '../schema.ts'
import { judgeBurn } from './burn-rate.ts'
import { countFailures, type FailureGroup, groupKey, readUsual } from './count-failures.ts'
import { countObjectives, type ObjectiveCounts, type WatchedObjective } from './count-objectives.ts'
import { choosePlaces, type PlaceFailures } from './failure-places.ts'
import { devicesMin, failureMinutes, usualShareOf } from './failure-share.ts'
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

/** Places whose boots fail of a cause more than usual. */
async function failing(db: DbOrTransaction, evaluation: Evaluation, open: OpenAlert[]): Promise<HeldAlert[]> {
  const openBy = new Map(open.map((alert) => [subjectKey(alert), alert]))
  const sites = bySite(await countFailures(db, evaluation))
  const places = sites.flatMap(({ site, parts }) => [
    site,
    ...parts.filter(({ collectionId }) => collectionId !== null),
  ])
  const isFresh = (place: FailureGroup) => !openBy.has(subjectKey(failureSubject(place)))
  const usual = await readUsual(
    db,
    evaluation,
    places.filter((place) => place.devices >= devicesMin && isFresh(place)),
  )
  // An open alert keeps the usual share of its beginning: its own failures must not become usual.
  const judged = (place: FailureGroup): PlaceFailures => {
    const alert = openBy.get(subjectKey(failureSubject(place)))
    const usualShare = alert ? usualOf(alert) : usualShareOf(usual.get(groupKey(place)) ?? { failed: 0, boots: 0 })
    return { ...place, usualShare, isOpen: alert !== undefined }
  }
  return sites.flatMap(({ site, parts }) =>
    choosePlaces({ site: judged(site), parts: parts.map(judged) }, evaluation.now).map(heldAlert),
  )
}

/** Groups of one site and cause, and their sum. */
function bySite(groups: FailureGroup[]): { site: FailureGroup; parts: FailureGroup[] }[] {
  const sites = Map.groupBy(groups, ({ siteId, cause }) => `${siteId} ${cause}`)
  return [...sites.values()].map((parts) => {
    const sum = (of: (part: FailureGroup) => number) => parts.reduce((total, part) => total + of(part), 0)
    const [first] = parts as [FailureGroup]
    const started = parts.flatMap(({ firstAt }) => firstAt?.getTime() ?? [])
    const site: FailureGroup = {
      siteId: first.siteId,
      collectionId: null,
      cause: first.cause,
      boots: sum(({ boots }) => boots),
      devices: sum(({ devices }) => devices),
      placeBoots: first.siteBoots,
      siteBoots: first.siteBoots,
      firstAt: started.length > 0 ? new Date(Math.min(...started)) : null,
      lastAt: new Date(Math.max(...parts.map(({ lastAt }) => lastAt.getTime()))),
    }
    return { site, parts }
  })
}

function failureSubject({ siteId, collectionId, cause }: Omit<AlertSubject, 'kind'>): AlertSubject {
  return { kind: 'failures', siteId, collectionId, cause }
}

function usualOf({ figures }: OpenAlert): number {
  return failureFigures.parse(figures).usualPercent / 100
}

function heldAlert(place: PlaceFailures): HeldAlert {
  const { boots, devices, placeBoots, usualShare, firstAt, lastAt } = place
  const figures = { minutes: failureMinutes, boots, devices, placeBoots, usualPercent: rounded(100 * usualShare) }
  return { ...failureSubject(place), figures, firstAt: firstAt ?? lastAt, lastAt, bootCount: boots }
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}
