import { randomUUIDv7 } from 'node:crypto'
import { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../../context/service-context.ts'
import { emit } from '../../events/event-bus.ts'
import { alertSelect, alertViewOf } from '../rows.ts'
import { type FailureFigures, type ObjectiveFigures, openAlertsMax } from '../schema.ts'

/** The subject of an alert: at most one alert is open for each. */
export interface AlertSubject {
  kind: 'objective' | 'failures'
  siteId: string
  collectionId: string | null
  cause: string | null
}

export interface OpenAlert extends AlertSubject {
  id: string
  figures: unknown
  lastAt: Date
}

/** A condition that holds. */
export interface HeldAlert extends AlertSubject {
  figures: ObjectiveFigures | FailureFigures
  firstAt: Date
  lastAt: Date
  /** Boots from `firstAt` on. */
  bootCount: number
}

export function subjectKey({ kind, siteId, collectionId, cause }: AlertSubject): string {
  return `${kind} ${siteId} ${collectionId} ${cause}`
}

export function readOpenAlerts(db: DbOrTransaction, organizationId: string): Promise<OpenAlert[]> {
  return db.alert.findMany({
    where: { organizationId, closedAt: null },
    orderBy: { id: 'asc' },
    take: openAlertsMax,
    select: { id: true, kind: true, siteId: true, collectionId: true, cause: true, figures: true, lastAt: true },
  })
}

interface Evaluation {
  organizationId: string
  now: Date
}

/**
 * Opens alerts for conditions that hold, updates those that are open, closes those whose condition is over, and
 * announces what has opened and closed. If there are too many, those with the most boots open.
 */
export async function keepAlerts(
  db: DbOrTransaction,
  evaluation: Evaluation,
  { open, held }: { open: OpenAlert[]; held: HeldAlert[] },
): Promise<void> {
  const heldBy = new Map(held.map((alert) => [subjectKey(alert), alert]))
  const openKeys = new Set(open.map(subjectKey))
  const over = open.filter((alert) => !heldBy.has(subjectKey(alert))).map(({ id }) => id)
  const staying = open.flatMap((alert) => {
    const now = heldBy.get(subjectKey(alert))
    return now ? [{ ...now, id: alert.id }] : []
  })
  const fresh = held
    .filter((alert) => !openKeys.has(subjectKey(alert)))
    .sort((a, b) => b.bootCount - a.bootCount)
    .slice(0, Math.max(0, openAlertsMax - staying.length))
  await updateAlerts(db, evaluation, staying)
  const closed = await closeAlerts(db, evaluation, over)
  const opened = await openAlerts(db, evaluation, fresh)
  await announceAlerts(db, evaluation, { opened, closed })
}

/** Boots of the alert's subject from the hour of its first one on. By the hour, each alert costs the same. */
const countedSql = (organizationId: string, alert: Prisma.Sql) => Prisma.sql`coalesce(case
  when ${alert}.kind::text = 'failures' and ${alert}.collection_id is not null then (
    select sum(boots) from collection_cause_hour as counted
    where counted.organization_id = ${organizationId}::uuid and counted.collection_id = ${alert}.collection_id
      and counted.cause = ${alert}.cause
      and counted.hour >= date_bin('1 hour', ${alert}.first_at, '2000-01-01 00:00:00+00'))
  when ${alert}.kind::text = 'failures' then (select sum(boots) from cause_hour as counted
    where counted.organization_id = ${organizationId}::uuid and counted.site_id = ${alert}.site_id
      and counted.cause = ${alert}.cause
      and counted.hour >= date_bin('1 hour', ${alert}.first_at, '2000-01-01 00:00:00+00'))
  else (select sum(missed) from objective_hour as counted
    where counted.organization_id = ${organizationId}::uuid
      and counted.place_id = coalesce(${alert}.collection_id, ${alert}.site_id)
      and counted.hour >= date_bin('1 hour', ${alert}.first_at, '2000-01-01 00:00:00+00'))
  end, 0)::int`

async function updateAlerts(
  db: DbOrTransaction,
  { organizationId }: Evaluation,
  alerts: (HeldAlert & { id: string })[],
): Promise<void> {
  if (alerts.length === 0) return
  const rows = alerts.map(({ id, figures, lastAt }) => ({ id, figures, last_at: lastAt }))
  await db.$executeRaw`
    update alert set figures = row.figures, last_at = greatest(alert.last_at, row.last_at),
      boot_count = greatest(alert.boot_count,
        ${countedSql(organizationId, Prisma.sql`alert`)} - alert.before_count)
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as row (id uuid, figures jsonb, last_at timestamptz)
    where alert.organization_id = ${organizationId}::uuid and alert.id = row.id and alert.closed_at is null`
}

async function closeAlerts(db: DbOrTransaction, { organizationId, now }: Evaluation, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  // Another API process may have been first.
  const rows = await db.$queryRaw<{ id: string }[]>`
    update alert set closed_at = ${now} where organization_id = ${organizationId}::uuid and id = any(${ids}::uuid[])
      and closed_at is null returning id::text`
  return rows.map(({ id }) => id)
}

async function openAlerts(
  db: DbOrTransaction,
  { organizationId, now }: Evaluation,
  alerts: HeldAlert[],
): Promise<string[]> {
  if (alerts.length === 0) return []
  const rows = alerts.map((alert) => ({
    id: randomUUIDv7(),
    kind: alert.kind,
    site_id: alert.siteId,
    collection_id: alert.collectionId,
    cause: alert.cause,
    figures: alert.figures,
    boot_count: alert.bootCount,
    first_at: alert.firstAt,
    last_at: alert.lastAt,
  }))
  const opened = await db.$queryRaw<{ id: string }[]>`
    insert into alert (organization_id, id, kind, site_id, collection_id, cause, figures, boot_count, before_count,
      first_at, last_at, opened_at)
    select ${organizationId}::uuid, row.id, row.kind::"AlertKind", row.site_id, row.collection_id, row.cause, row.figures,
      row.boot_count, greatest(0, ${countedSql(organizationId, Prisma.sql`row`)} - row.boot_count), row.first_at,
      row.last_at, ${now}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id uuid, kind text, site_id uuid, collection_id uuid,
      cause text, figures jsonb, boot_count int, first_at timestamptz, last_at timestamptz)
    on conflict do nothing returning id::text`
  return opened.map(({ id }) => id)
}

async function announceAlerts(
  db: DbOrTransaction,
  { organizationId, now }: Evaluation,
  { opened, closed }: { opened: string[]; closed: string[] },
): Promise<void> {
  const ids = [...opened, ...closed]
  if (ids.length === 0) return
  // Alerts of a site in the trash are not announced.
  const rows = await db.alert.findMany({
    where: { organizationId, id: { in: ids }, site: { deletionId: null } },
    orderBy: { id: 'asc' },
    select: alertSelect,
  })
  const alerts = rows.map((row) => {
    const { id, kind, title, farmId, siteId, siteName, collectionId, collectionName, ...rest } = alertViewOf(row)
    const { cause, bootCount, firstAt, lastAt, boots } = rest
    const where = { siteId, siteName, collectionId, collectionName }
    return {
      isOpen: opened.includes(id),
      place: { farmId, siteId, collectionId },
      facts: { alertId: id, kind, title, ...where, cause, bootCount, firstAt, lastAt, boots },
    }
  })
  await emit('alertsChanged', { db, now, organizationId, alerts })
}
