import { z } from 'zod'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { nameOf, pageInput, pageOf, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

/** The types of events; docs/reference/api.md describes the content of each. */
export const webhookEventTypes = [
  'boot.failed',
  'edge.offline',
  'wave.done',
  'version.promoted',
  'version.missing',
  'write_cache.filling',
  'device.key_alarm',
  'rollout.paused',
  'store.filling',
  'disk_capture.ended',
  'alert.opened',
  'alert.closed',
  'finding.opened',
  'finding.closed',
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

export const webhookSort = listSort({ createdAt: instantOf('createdAt'), name: text('name') }, '-createdAt')
export const webhookListInput = z.object({ ...pageInput, sort: webhookSort.input })
export const webhookInput = z.object({ webhookId: uuid })
export const createWebhookInput = z.object(webhookFields)
export const updateWebhookInput = z.object({
  webhookId: uuid,
  revision: seenRevision,
  enabled: z.boolean(),
  ...webhookFields,
})

export const webhookView = z
  .object({
    id: uuid,
    name: z.string(),
    url: z.string(),
    events: z.array(z.enum(webhookEventTypes)),
    enabled: z.boolean(),
    disabledReason: z
      .string()
      .nullable()
      .describe('Reason for an automatic switch-off; null if a person switched it off, or if it is on.'),
    failingSince: instant.nullable().describe('Since when no message came through; null while they do.'),
    previousSecretUntil: instant.nullable().describe('Until then messages are also signed with the previous secret.'),
    revision: count,
    createdAt: instant,
  })
  .meta({ id: 'Webhook' })
export type WebhookView = z.infer<typeof webhookView>
export const webhookPage = pageOf(webhookView)
/** The secret, `whsec_` and base64 as Standard Webhooks has it, is shown once. */
export const webhookWithSecret = webhookView.extend({ secret: z.string() }).meta({ id: 'WebhookWithSecret' })

/** One attempt to send a message. */
const webhookAttempt = z.object({
  at: instant,
  durationMs: count,
  status: count.nullable().describe('Null where no answer came.'),
  error: z.string().nullable().describe('Why it did not come through; null where it did.'),
  answer: z.string().nullable().describe('The beginning of the answer: untrusted text.'),
})
export type WebhookAttempt = z.infer<typeof webhookAttempt>

export const deliverySort = listSort({ createdAt: instantOf('createdAt') }, '-createdAt')
export const deliveryListInput = z.object({ ...pageInput, sort: deliverySort.input, webhookId: uuid })
export const deliveryInput = z.object({ webhookId: uuid, deliveryId: uuid })
export const deliveryView = z
  .object({
    id: uuid,
    eventId: uuid.describe("The message's `webhook-id`."),
    eventType: z.string(),
    state: z.enum(['pending', 'delivered', 'failed']),
    createdAt: instant,
    dueAt: instant.nullable().describe('When the next attempt is due; null if there is none.'),
    attemptCount: count,
    attempts: z.array(webhookAttempt).describe('The last ones, oldest first.'),
    payload: z.unknown(),
  })
  .meta({ id: 'WebhookDelivery' })
export type DeliveryView = z.infer<typeof deliveryView>
export const deliveryPage = pageOf(deliveryView)
