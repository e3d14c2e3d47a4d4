import { randomUUID } from 'node:crypto'
import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { getWebhook } from './list-webhooks.ts'
import {
  type DeliveryView,
  type deliveryInput,
  type deliveryListInput,
  type deliveryPage,
  deliverySort,
  pingType,
  type WebhookAttempt,
  type webhookInput,
} from './schema.ts'

const deliverySelect = {
  id: true,
  eventId: true,
  state: true,
  createdAt: true,
  dueAt: true,
  attemptCount: true,
  attempts: true,
  event: { select: { type: true, payload: true } },
} satisfies Prisma.WebhookDeliverySelect

type DeliveryRow = Prisma.WebhookDeliveryGetPayload<{ select: typeof deliverySelect }>

/** With what each endpoint answered. Throws `not_found`. */
export async function listDeliveries(
  context: ServiceContext,
  { webhookId, ...asked }: z.output<typeof deliveryListInput>,
): Promise<z.infer<typeof deliveryPage>> {
  const { db, actor } = context
  await getWebhook(context, { webhookId })
  const order = listOrder(deliverySort, asked)
  const rows = await db.webhookDelivery.findMany({
    where: { organizationId: actor.organizationId, endpointId: webhookId, ...order.where },
    orderBy: order.orderBy,
    take: order.take,
    select: deliverySelect,
  })
  return order.page(rows, deliveryViewOf)
}

/** Throws `not_found`. */
export async function getDelivery(
  { db, actor }: ServiceContext,
  { webhookId, deliveryId }: z.output<typeof deliveryInput>,
): Promise<DeliveryView> {
  const where = { ...ownRow(actor, deliveryId), endpointId: webhookId }
  const row = await db.webhookDelivery.findUnique({ where, select: deliverySelect })
  if (!row) throw new AppError('not_found')
  return deliveryViewOf(row)
}

/**
 * Sends the same message again, at once, with all its tries; receivers know it by its id. Throws `not_found`,
 * `conflict`.
 */
export async function redeliver(
  context: ServiceContext,
  { webhookId, deliveryId }: z.output<typeof deliveryInput>,
): Promise<DeliveryView> {
  const { db, clock, actor } = context
  const { name } = await requireEnabled(context, webhookId)
  const before = await readDelivery(context, deliveryId)
  const { count } = await db.webhookDelivery.updateMany({
    where: { organizationId: actor.organizationId, id: deliveryId, endpointId: webhookId },
    data: { state: 'pending', attemptCount: 0, dueAt: clock() },
  })
  if (count === 0) throw new AppError('not_found')
  const delivery = await readDelivery(context, deliveryId)
  await recordChange(context, {
    kind: 'webhook',
    id: webhookId,
    name,
    before: auditOf(before),
    after: auditOf(delivery),
  })
  return delivery
}

/** A message without an event, to see whether it arrives. Throws `not_found`, `conflict`. */
export async function pingWebhook(
  context: ServiceContext,
  { webhookId }: z.output<typeof webhookInput>,
): Promise<DeliveryView> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const { name } = await requireEnabled(context, webhookId)
  const now = clock()
  const eventId = randomUUID()
  const payload = { type: pingType, timestamp: now.toISOString(), organizationId, data: { webhookId } }
  await db.webhookEvent.create({
    data: { organizationId, id: eventId, type: pingType, subject: eventId, payload, createdAt: now },
    select: { id: true },
  })
  const { id } = await db.webhookDelivery.create({
    data: { organizationId, endpointId: webhookId, eventId, dueAt: now, createdAt: now },
    select: { id: true },
  })
  const delivery = await readDelivery(context, id)
  const object = { kind: 'webhook', id: webhookId, name }
  await recordChange(context, { ...object, before: null, after: auditOf(delivery) })
  return delivery
}

function auditOf({ id, eventType, state, attemptCount }: DeliveryView) {
  return { deliveryId: id, eventType, state, attemptCount }
}

async function requireEnabled(context: ServiceContext, webhookId: string): Promise<{ name: string }> {
  const { name, enabled } = await getWebhook(context, { webhookId })
  if (!enabled) throw new AppError('conflict', { public: 'This webhook is disabled. Enable it first.' })
  return { name }
}

async function readDelivery({ db, actor }: ServiceContext, id: string): Promise<DeliveryView> {
  const row = await db.webhookDelivery.findUnique({ where: ownRow(actor, id), select: deliverySelect })
  if (!row) throw new AppError('not_found')
  return deliveryViewOf(row)
}

function deliveryViewOf(row: DeliveryRow): DeliveryView {
  const { id, eventId, state, attemptCount, event } = row
  return {
    id,
    eventId,
    state,
    attemptCount,
    eventType: event.type,
    payload: event.payload,
    createdAt: row.createdAt.toISOString(),
    dueAt: state === 'pending' ? row.dueAt.toISOString() : null,
    attempts: row.attempts as WebhookAttempt[],
  }
}
