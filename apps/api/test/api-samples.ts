import { randomUUID } from 'node:crypto'
import type { Sample, SampleTenant } from './sample.ts'

const webhookFields = { name: 'Chat', url: 'https://hooks.example/in', events: ['boot.failed'] }
const firstWebhook = (tenant: SampleTenant) => tenant.spareWebhookIds[0] ?? ''
/** Samples of keys and webhooks. */
export const apiSamples: Record<string, Sample> = {
  'webhook.list': {},
  'webhook.get': { idName: 'webhookId', ownId: firstWebhook },
  'webhook.create': { input: () => webhookFields },
  'webhook.update': {
    idName: 'webhookId',
    input: { ...webhookFields, revision: 1, enabled: true },
    ownId: (tenant) => tenant.spareWebhookIds.pop() ?? '',
  },
  'webhook.remove': { idName: 'webhookId', ownId: (tenant) => tenant.spareWebhookIds.pop() ?? '' },
  'webhook.rotateSecret': { idName: 'webhookId', ownId: firstWebhook },
  'webhook.ping': { idName: 'webhookId', ownId: firstWebhook },
  'webhook.deliveries': { idName: 'webhookId', ownId: firstWebhook },
  'webhook.delivery': {
    idName: 'webhookId',
    input: (tenant) => ({ deliveryId: firstWebhook(tenant) }),
    ownId: firstWebhook,
  },
  'webhook.redeliver': {
    idName: 'webhookId',
    input: (tenant) => ({ deliveryId: firstWebhook(tenant) }),
    ownId: firstWebhook,
  },
  'apiKey.roles': {},
  'apiKey.list': {},
  'apiKey.get': { idName: 'apiKeyId', ownId: (tenant) => tenant.apiKeyId },
  'apiKey.create': { input: () => ({ name: randomUUID(), role: 'viewer' }) },
  'apiKey.rotate': { idName: 'apiKeyId', ownId: (tenant) => tenant.serviceKeyId },
  'apiKey.takeOver': { idName: 'apiKeyId', ownId: (tenant) => tenant.apiKeyId },
  'apiKey.revoke': { idName: 'apiKeyId', ownId: (tenant) => tenant.apiKeyId },
}
