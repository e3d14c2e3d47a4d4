import type { z } from 'zod'
import { visibleAlerts } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { causePath, causeSentence } from './alert-text.ts'
import { alertSelect, alertViewOf } from './rows.ts'
import {
  type AlertView,
  alertCauses,
  type alertListInput,
  type alertPage,
  alertSort,
  type OpenCausesView,
  type openAlertCount,
  openAlertsMax,
} from './schema.ts'

export async function listAlerts(
  { db, actor }: ServiceContext,
  input: z.output<typeof alertListInput>,
): Promise<z.infer<typeof alertPage>> {
  const order = listOrder(alertSort, input)
  const { state, kind, siteId, collectionId } = input
  const rows = await db.alert.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(state ? { closedAt: state === 'open' ? null : { not: null } } : {}),
      ...(kind ? { kind } : {}),
      ...(siteId ? { siteId } : {}),
      ...(collectionId ? { collectionId } : {}),
      AND: [visibleAlerts(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: alertSelect,
  })
  return order.page(rows, alertViewOf)
}

/** Throws `not_found`. */
export async function getAlert({ db, actor }: Pick<ServiceContext, 'db' | 'actor'>, id: string): Promise<AlertView> {
  const row = await db.alert.findUnique({ where: ownRow(actor, id), select: alertSelect })
  if (!row) throw new AppError('not_found')
  return alertViewOf(row)
}

/** Open alerts of failures by cause, over all sites and collections that the actor sees. */
export async function readOpenCauses({ db, actor }: ServiceContext): Promise<OpenCausesView> {
  const rows = await db.alert.findMany({
    where: { organizationId: actor.organizationId, closedAt: null, kind: 'failures', AND: [visibleAlerts(actor)] },
    orderBy: [{ bootCount: 'desc' }, { id: 'asc' }],
    take: openAlertsMax,
    select: alertSelect,
  })
  const causes = alertCauses.flatMap((cause) => {
    const alerts = rows.filter((row) => row.cause === cause)
    if (alerts.length === 0) return []
    const since = new Date(Math.min(...alerts.map(({ firstAt }) => firstAt.getTime())))
    return {
      cause,
      sentence: causeSentence(cause),
      bootCount: countBoots(alerts),
      places: alerts.map(({ id, siteId, site, collectionId, collection, bootCount }) => ({
        alertId: id,
        siteId,
        siteName: site.name,
        collectionId,
        collectionName: collection?.name ?? null,
        bootCount,
      })),
      boots: causePath(cause, since),
    }
  })
  return { causes: causes.sort((a, b) => b.bootCount - a.bootCount) }
}

/** The alert of a site counts the boots of its collections, too. */
function countBoots(alerts: { siteId: string; collectionId: string | null; bootCount: number }[]): number {
  const sites = new Set(alerts.flatMap(({ siteId, collectionId }) => (collectionId === null ? siteId : [])))
  return alerts.reduce(
    (sum, { siteId, collectionId, bootCount }) => (collectionId !== null && sites.has(siteId) ? sum : sum + bootCount),
    0,
  )
}

/** Alerts that the actor sees and that are open. */
export async function countOpenAlerts({ db, actor }: ServiceContext): Promise<z.infer<typeof openAlertCount>> {
  const rows = await db.alert.findMany({
    where: { organizationId: actor.organizationId, closedAt: null, AND: [visibleAlerts(actor)] },
    take: openAlertsMax,
    select: { acknowledgedAt: true },
  })
  return { count: rows.length, unacknowledged: rows.filter(({ acknowledgedAt }) => acknowledgedAt === null).length }
}
