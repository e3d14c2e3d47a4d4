import type { RouterOutputs } from '../../lib/trpc'

export type Webhook = RouterOutputs['webhook']['get']
export type WebhookEvent = Webhook['events'][number]
export type Delivery = RouterOutputs['webhook']['deliveries']['items'][number]

export const eventText: Record<WebhookEvent, string> = {
  'boot.failed': 'Boot failed',
  'edge.offline': 'Edge went offline',
  'wave.done': 'Boot wave finished',
  'version.promoted': 'Version promoted',
  'write_cache.filling': 'Write cache nearly full',
}

export const events = Object.keys(eventText) as WebhookEvent[]
