import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import {
  type WebhookEventType,
  type WebhookView,
  type webhookInput,
  type webhookListInput,
  type webhookPage,
  webhookSort,
} from './schema.ts'

export async function listWebhooks(
  { db, clock, actor: { organizationId } }: ServiceContext,
  input: z.output<typeof webhookListInput>,
): Promise<z.infer<typeof webhookPage>> {
  const order = listOrder(webhookSort, input)
  const rows = await db.webhookEndpoint.findMany({
    where: { organizationId, ...order.where },
    orderBy: order.orderBy,
    take: order.take,
    select: webhookSelect,
  })
  const now = clock()
  return order.page(rows, (row) => webhookViewOf(row, now))
}

/** Throws `not_found`. */
export async function getWebhook(
  { db, clock, actor: { organizationId } }: ServiceContext,
  { webhookId }: z.output<typeof webhookInput>,
): Promise<WebhookView> {
  const row = await db.webhookEndpoint.findUnique({
    where: ownRow({ organizationId }, webhookId),
    select: webhookSelect,
  })
  if (!row) throw new AppError('not_found')
  return webhookViewOf(row, clock())
}

export const webhookSelect = {
  id: true,
  name: true,
  url: true,
  events: true,
  enabled: true,
  disabledReason: true,
  failingSince: true,
  previousSecretUntil: true,
  revision: true,
  createdAt: true,
} satisfies Prisma.WebhookEndpointSelect

type WebhookRow = Prisma.WebhookEndpointGetPayload<{ select: typeof webhookSelect }>

export function webhookViewOf(row: WebhookRow, now: Date): WebhookView {
  const { id, name, url, enabled, disabledReason, revision, previousSecretUntil } = row
  return {
    id,
    name,
    url,
    enabled,
    disabledReason,
    revision,
    events: row.events as WebhookEventType[],
    failingSince: row.failingSince?.toISOString() ?? null,
    previousSecretUntil: previousSecretUntil && previousSecretUntil > now ? previousSecretUntil.toISOString() : null,
    createdAt: row.createdAt.toISOString(),
  }
}
