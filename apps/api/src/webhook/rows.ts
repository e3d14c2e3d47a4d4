import type { Prisma } from '@bootfarm/db'
import type { WebhookEventType, WebhookView } from './schema.ts'

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
