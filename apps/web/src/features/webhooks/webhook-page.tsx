'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { Facts, Panel } from '../../components/panel'
import { ShownSecret } from '../../components/shown-secret'
import { LoadingState, Skeleton } from '../../components/states'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { DeliveryList } from './delivery-list'
import { WebhookActions } from './webhook-actions'
import { WebhookState } from './webhook-state'
import { eventText, type Webhook } from './webhook-text'

export function WebhookPage({ webhookId }: { webhookId: string }) {
  const query = useQuery(useTRPC().webhook.get.queryOptions({ webhookId }))
  if (query.data) return <Shown webhook={query.data} />
  if (query.isPending)
    return (
      <LoadingState label="Loading webhook">
        <Page>
          <Skeleton className="h-8 w-60" />
          <Skeleton className="h-64" />
        </Page>
      </LoadingState>
    )
  return <QueryError noun="webhook" error={query.error} onRetry={() => query.refetch()} />
}

function Shown({ webhook }: { webhook: Webhook }) {
  const mayChange = useMay('webhook.change', {})
  const [secret, setSecret] = useState<string | null>(null)
  return (
    <Page>
      <PageName name={webhook.name} />
      <PageHeader
        title={webhook.name}
        tags={<WebhookState webhook={webhook} />}
        actions={mayChange && <WebhookActions webhook={webhook} onSecret={setSecret} />}
      />
      {secret && (
        <Panel title="New secret">
          <ShownSecret
            label="New secret"
            secret={secret}
            hint="Copy the secret to the receiver now. It is shown only once. For one day, messages are also signed with the old secret."
          />
        </Panel>
      )}
      <Panel title="Webhook">
        <Facts
          facts={[
            { label: 'URL', value: <code className="break-all font-mono text-xs">{webhook.url}</code> },
            { label: 'Events', value: webhook.events.map((event) => eventText[event]).join(', ') },
            ...(webhook.disabledReason ? [{ label: 'Disabled', value: webhook.disabledReason }] : []),
            ...(webhook.failingSince
              ? [{ label: 'Failing since', value: <Instant at={webhook.failingSince} full /> }]
              : []),
            ...(webhook.previousSecretUntil
              ? [{ label: 'Old secret until', value: <Instant at={webhook.previousSecretUntil} full /> }]
              : []),
            { label: 'Created', value: <Instant at={webhook.createdAt} full /> },
          ]}
        />
      </Panel>
      <Panel title="Deliveries" flush>
        <DeliveryList webhookId={webhook.id} mayChange={mayChange} />
      </Panel>
    </Page>
  )
}
