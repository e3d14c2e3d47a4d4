import type { z } from 'zod'
import { visibleAlerts } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { alertSelect, alertViewOf } from './rows.ts'
import {
  type AlertView,
  type alertListInput,
  type alertPage,
  alertSort,
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

/** Alerts that the actor sees and that are open. */
export async function countOpenAlerts({ db, actor }: ServiceContext): Promise<z.infer<typeof openAlertCount>> {
  const rows = await db.alert.findMany({
    where: { organizationId: actor.organizationId, closedAt: null, AND: [visibleAlerts(actor)] },
    take: openAlertsMax,
    select: { acknowledgedAt: true },
  })
  return { count: rows.length, unacknowledged: rows.filter(({ acknowledgedAt }) => acknowledgedAt === null).length }
}
