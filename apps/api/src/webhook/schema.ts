import { z } from 'zod'
import { nameOf, pageInput, pageOf, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

/** The events of an endpoint; docs/reference/api.md describes the content of each. */
const webhookEventTypes = [
  'boot.failed',
  'edge.offline',
  'wave.done',
  'version.promoted',
  'write_cache.filling',
  'device.key_alarm',
  'rollout.paused',
] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]
/** Sent on demand, to every endpoint. */
export const pingType = 'ping'

export const webhooksMax = 50
const urlLengthMax = 2_048

const name = nameOf('Enter a name for the webhook.')
/** Its destination is checked when a message is sent: webhook/target-guard.ts. */
const target = z
  .url({ protocol: /^https?$/, error: 'Enter an https:// URL.' })
  .max(urlLengthMax)
  .refine((text) => !/\p{C}/u.test(text), 'A URL cannot contain control characters.')
const webhookFields = {
  name,
  url: target,
  events: z.array(z.enum(webhookEventTypes)).min(1, 'Select at least one event.').max(webhookEventTypes.length),
}

export const webhookListInput = z.object(pageInput)
export const webhookInput = z.object({ webhookId: uuid })
export const createWebhookInput = z.object(webhookFields)
export const updateWebhookInput = z.object({
  webhookId: uuid,
  revision: seenRevision,
  enabled: z.boolean(),
  ...webhookFields,
})

export const webhookView = z.object({
  id: uuid,
  name: z.string(),
  url: z.string(),
  events: z.array(z.enum(webhookEventTypes)),
  enabled: z.boolean(),
  /** Reason for an automatic switch-off; null if a person switched it off, or if it is on. */
  disabledReason: z.string().nullable(),
  /** Since when no message came through; null while they do. */
  failingSince: instant.nullable(),
  /** Until then messages are also signed with the previous secret. */
  previousSecretUntil: instant.nullable(),
  revision: count,
  createdAt: instant,
})
export type WebhookView = z.infer<typeof webhookView>
export const webhookPage = pageOf(webhookView)
/** The secret, `whsec_` and base64 as Standard Webhooks has it, is shown once. */
export const webhookWithSecret = webhookView.extend({ secret: z.string() })

/** One attempt to send a message. */
const webhookAttempt = z.object({
  at: instant,
  durationMs: count,
  /** Null where no answer came. */
  status: count.nullable(),
  /** Why it did not come through; null where it did. */
  error: z.string().nullable(),
  /** The beginning of the answer: untrusted text. */
  answer: z.string().nullable(),
})
export type WebhookAttempt = z.infer<typeof webhookAttempt>

export const deliveryListInput = z.object({ ...pageInput, webhookId: uuid })
export const deliveryInput = z.object({ webhookId: uuid, deliveryId: uuid })
export const deliveryView = z.object({
  id: uuid,
  /** The message's `webhook-id`. */
  eventId: uuid,
  eventType: z.string(),
  state: z.enum(['pending', 'delivered', 'failed']),
  createdAt: instant,
  /** When the next attempt is due; null if there is none. */
  dueAt: instant.nullable(),
  attemptCount: count,
  /** The last ones, oldest first. */
  attempts: z.array(webhookAttempt),
  payload: z.unknown(),
})
export type DeliveryView = z.infer<typeof deliveryView>
export const deliveryPage = pageOf(deliveryView)
