import { Tag } from '../../components/tag'
import type { Webhook } from './webhook-text'

export function WebhookState({ webhook }: { webhook: Webhook }) {
  if (!webhook.enabled)
    return (
      <Tag
        tone={webhook.disabledReason ? 'failed' : 'plain'}
        title={webhook.disabledReason ?? 'A member disabled this webhook.'}
      >
        Disabled
      </Tag>
    )
  if (webhook.failingSince)
    return (
      <Tag tone="silent" title="The last message was not delivered.">
        Failing
      </Tag>
    )
  return <Tag tone="ready">Active</Tag>
}
