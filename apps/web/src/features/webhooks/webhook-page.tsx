'use client'

import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Instant } from '../../components/instant'
import { EmptyState, Facts, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { ShownSecret } from '../../components/shown-secret'
import type { Column } from '../../components/table'
import { Tag, type Tone } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { nextPage, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { ObjectQuery, PageName } from '../shell/object-page'
import { type Delivery, eventText, type Webhook, WebhookActions, WebhookState } from './webhook-actions'

export function WebhookPage({ webhookId }: { webhookId: string }) {
  const query = useQuery(useTRPC().webhook.get.queryOptions({ webhookId }))
  return (
    <ObjectQuery noun="webhook" query={query}>
      {(webhook) => <Shown webhook={webhook} />}
    </ObjectQuery>
  )
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

/** Messages are on their way for a moment: their answers are looked for as long as one is. */
const refreshMs = 1_000

const states: Record<Delivery['state'], { word: string; tone: Tone }> = {
  pending: { word: 'Pending', tone: 'live' },
  delivered: { word: 'Delivered', tone: 'ready' },
  failed: { word: 'Failed', tone: 'failed' },
}

const columns: Column<Delivery>[] = [
  { title: 'Time', from: 'sm', cell: ({ createdAt }) => <Instant at={createdAt} /> },
  { title: 'Event', cell: ({ eventType }) => <code className="font-mono text-xs">{eventType}</code> },
  { title: 'Status', cell: ({ state }) => <Tag tone={states[state].tone}>{states[state].word}</Tag> },
  { title: 'Response', wide: true, cell: (delivery) => <Answers delivery={delivery} /> },
]

/** The endpoint's last answer; when opened, all of it and what was sent. */
function Answers({ delivery }: { delivery: Delivery }) {
  const last = delivery.attempts.at(-1)
  if (!last) return <span className="text-ink-faint">none yet</span>
  return (
    <details className="min-w-0">
      <summary className="cursor-pointer rounded text-ink-soft text-xs">
        {last.status ?? 'No response'} in {last.durationMs} ms
        {delivery.attempts.length > 1 && `, ${delivery.attempts.length} attempts`}
      </summary>
      <ol className="mt-2 flex flex-col gap-1 whitespace-normal text-xs">
        {delivery.attempts.map((attempt) => (
          <li key={attempt.at}>
            <Instant at={attempt.at} />{' '}
            <span className={attempt.error ? 'text-failed' : 'text-ready'}>{attempt.error ?? 'Received.'}</span>{' '}
            {attempt.answer && <code className="break-all font-mono text-ink-faint">{attempt.answer}</code>}
          </li>
        ))}
      </ol>
      <pre className="mt-2 max-w-[80ch] whitespace-pre-wrap break-all font-mono text-ink-soft text-xs">
        {JSON.stringify(delivery.payload, null, 2)}
      </pre>
    </details>
  )
}

function DeliveryList({ webhookId, mayChange }: { webhookId: string; mayChange: boolean }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.webhook.deliveries.infiniteQueryOptions(
      { webhookId, limit: 20 },
      {
        ...nextPage,
        refetchInterval: ({ state }) =>
          state.data?.pages[0]?.items.some((one) => one.state === 'pending') ? refreshMs : false,
      },
    ),
  )
  const redeliver = useMutation(
    trpc.webhook.redeliver.mutationOptions({
      onSuccess: useRefresh(trpc.webhook.deliveries.pathFilter()),
      onError: useFailureToast('Could not resend the message'),
    }),
  )
  const again: Column<Delivery> = {
    title: 'Actions',
    align: 'right',
    cell: ({ id, state }) =>
      state !== 'pending' && (
        <Button look="bare" onClick={() => redeliver.mutate({ webhookId, deliveryId: id })}>
          Resend
        </Button>
      ),
  }
  return (
    <PagedList
      label="Deliveries"
      query={query}
      columns={mayChange ? [...columns, again] : columns}
      rowKey={({ id }) => id}
      empty={<EmptyState title="No deliveries yet." text="Send a test message to check that it arrives." />}
    />
  )
}
