import type { RouterOutputs } from '../../lib/trpc'

export type Webhook = RouterOutputs['webhook']['get']
export type WebhookEvent = Webhook['events'][number]
export type Delivery = RouterOutputs['webhook']['deliveries']['items'][number]

export const eventWords: Record<WebhookEvent, string> = {
  'boot.failed': 'A boot failed',
  'edge.offline': 'An edge has fallen silent',
  'wave.done': 'A wave of boots is done',
  'version.promoted': 'A version was promoted',
  'write_cache.filling': 'A write cache fills up',
}

export const events = Object.keys(eventWords) as WebhookEvent[]
