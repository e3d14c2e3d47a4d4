import { randomUUID } from 'node:crypto'
import type { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../context/service-context.ts'
import { activeTraceparent } from '../rules/trace-context.ts'
import type { WebhookEventType } from './schema.ts'

export interface EventToPublish {
  organizationId: string
  type: WebhookEventType
  /** What makes it one event, however often its cause is seen. */
  subject: string
  /** Texts of devices stand in a member `untrusted`. */
  data: Prisma.InputJsonObject
}

/**
 * Writes the event and a message for each endpoint that wants to hear of it, in the transaction of what happened: both
 * are kept, or neither. Nothing is written where nobody listens; a subject that is known is not told again.
 */
export async function publishEvents(db: DbOrTransaction, now: Date, events: EventToPublish[]): Promise<void> {
  const [first] = events
  if (!first) return
  const { organizationId } = first
  const endpoints = await db.webhookEndpoint.findMany({
    where: { organizationId, enabled: true },
    select: { id: true, events: true },
  })
  for (const { type, subject, data } of events) {
    const listeners = endpoints.filter((endpoint) => endpoint.events.includes(type))
    if (listeners.length === 0) continue
    const id = randomUUID()
    const payload = { type, timestamp: now.toISOString(), organizationId, data }
    const { count } = await db.webhookEvent.createMany({
      data: [{ organizationId, id, type, subject, payload, createdAt: now, traceparent: activeTraceparent() }],
      skipDuplicates: true,
    })
    if (count > 0)
      await db.webhookDelivery.createMany({
        data: listeners.map((endpoint) => ({
          organizationId,
          endpointId: endpoint.id,
          eventId: id,
          dueAt: now,
          createdAt: now,
        })),
      })
  }
}
