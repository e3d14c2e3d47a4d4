import type { z } from 'zod'
import { beforeInstant, cutPage } from '../context/keyset.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { webhookSelect, webhookViewOf } from './rows.ts'
import type { WebhookView, webhookInput, webhookListInput, webhookPage } from './schema.ts'

/** Newest first. */
export async function listWebhooks(
  { db, clock, actor: { organizationId } }: ServiceContext,
  { cursor, limit }: z.output<typeof webhookListInput>,
): Promise<z.infer<typeof webhookPage>> {
  const rows = await db.webhookEndpoint.findMany({
    where: { organizationId, ...beforeInstant(cursor) },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: limit + 1,
    select: webhookSelect,
  })
  const now = clock()
  return cutPage(rows, limit, {
    item: (row) => webhookViewOf(row, now),
    key: (row) => [row.createdAt.toISOString(), row.id],
  })
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
