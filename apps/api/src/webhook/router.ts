import { procedure, router } from '../http/trpc/trpc.ts'
import { removedObject } from '../rules/changed-object.ts'
import { createWebhook, removeWebhook, rotateWebhookSecret, updateWebhook } from './change-webhooks.ts'
import { getDelivery, listDeliveries, pingWebhook, redeliver } from './deliveries.ts'
import { getWebhook, listWebhooks } from './list-webhooks.ts'
import {
  createWebhookInput,
  deliveryInput,
  deliveryListInput,
  deliveryPage,
  deliveryView,
  updateWebhookInput,
  webhookInput,
  webhookListInput,
  webhookPage,
  webhookView,
  webhookWithSecret,
} from './schema.ts'

const read = { permission: 'webhook.read', place: 'organization' } as const
const change = { permission: 'webhook.change', place: 'organization' } as const

export const webhookRouter = router({
  list: procedure
    .meta({ ...read, rest: { method: 'GET', path: '/webhooks', summary: 'Webhooks' } })
    .input(webhookListInput)
    .output(webhookPage)
    .query(({ ctx, input }) => listWebhooks(ctx, input)),
  get: procedure
    .meta({ ...read, rest: { method: 'GET', path: '/webhooks/{webhookId}', summary: 'A webhook' } })
    .input(webhookInput)
    .output(webhookView)
    .query(({ ctx, input }) => getWebhook(ctx, input)),
  create: procedure
    .meta({
      ...change,
      rest: {
        method: 'POST',
        path: '/webhooks',
        summary: 'Create a webhook',
        description: 'The answer contains the secret that signs the messages, which is shown only once.',
        creates: '/webhooks/{id}',
      },
    })
    .input(createWebhookInput)
    .output(webhookWithSecret)
    .mutation(({ ctx, input }) => createWebhook(ctx, input)),
  update: procedure
    .meta({
      ...change,
      rest: {
        method: 'PUT',
        path: '/webhooks/{webhookId}',
        summary: 'Replace a webhook, enable or disable it',
      },
    })
    .input(updateWebhookInput)
    .output(webhookView)
    .mutation(({ ctx, input }) => updateWebhook(ctx, input)),
  remove: procedure
    .meta({
      ...change,
      rest: {
        method: 'DELETE',
        path: '/webhooks/{webhookId}',
        summary: 'Delete a webhook and its deliveries',
        silent: true,
      },
    })
    .input(webhookInput)
    .output(removedObject)
    .mutation(({ ctx, input }) => removeWebhook(ctx, input)),
  rotateSecret: procedure
    .meta({
      ...change,
      rest: {
        method: 'POST',
        path: '/webhooks/{webhookId}/rotate-secret',
        summary: 'Rotate the secret of a webhook',
        description: 'For one day, messages are signed with the old secret as well.',
      },
    })
    .input(webhookInput)
    .output(webhookWithSecret)
    .mutation(({ ctx, input }) => rotateWebhookSecret(ctx, input)),
  ping: procedure
    .meta({
      ...change,
      rest: { method: 'POST', path: '/webhooks/{webhookId}/ping', summary: 'Send a test message' },
    })
    .input(webhookInput)
    .output(deliveryView)
    .mutation(({ ctx, input }) => pingWebhook(ctx, input)),
  deliveries: procedure
    .meta({
      ...read,
      rest: {
        method: 'GET',
        path: '/webhooks/{webhookId}/deliveries',
        summary: 'Deliveries with their answers',
      },
    })
    .input(deliveryListInput)
    .output(deliveryPage)
    .query(({ ctx, input }) => listDeliveries(ctx, input)),
  delivery: procedure
    .meta({
      ...read,
      rest: {
        method: 'GET',
        path: '/webhooks/{webhookId}/deliveries/{deliveryId}',
        summary: 'A delivery with its answers',
      },
    })
    .input(deliveryInput)
    .output(deliveryView)
    .query(({ ctx, input }) => getDelivery(ctx, input)),
  redeliver: procedure
    .meta({
      ...change,
      rest: {
        method: 'POST',
        path: '/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver',
        summary: 'Resend a message',
      },
    })
    .input(deliveryInput)
    .output(deliveryView)
    .mutation(({ ctx, input }) => redeliver(ctx, input)),
})
