'use client'

import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, ObjectLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { ShownSecret } from '../../components/shown-secret'
import type { Column } from '../../components/table'
import { formProblem, nextPage, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { type Webhook, WebhookDialog, WebhookState } from './webhook-actions'

const columns: Column<Webhook>[] = [
  {
    title: 'Name',
    cell: ({ id, name }) => <ObjectLink href={`/webhooks/${id}`}>{name}</ObjectLink>,
  },
  { title: 'Status', cell: (webhook) => <WebhookState webhook={webhook} /> },
  {
    title: 'URL',
    from: 'sm',
    wide: true,
    cell: ({ url }) => <span className="font-mono text-ink-soft text-xs">{url}</span>,
  },
  { title: 'Events', from: 'md', cell: ({ events }) => events.join(', ') },
  { title: 'Created', from: 'lg', cell: ({ createdAt }) => <Instant at={createdAt} /> },
]

const summary = 'Send events to chat or monitoring.'

export function WebhooksPage() {
  const trpc = useTRPC()
  const refresh = useRefresh(trpc.webhook.list.pathFilter())
  const mayChange = useMay('webhook.change', {})
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const query = useInfiniteQuery(trpc.webhook.list.infiniteQueryOptions({}, nextPage))
  const create = useMutation(
    trpc.webhook.create.mutationOptions({
      onSuccess: (made) => {
        setSecret(made.secret)
        setCreating(false)
        return refresh()
      },
    }),
  )
  return (
    <Page>
      <PageHeader
        title="Webhooks"
        summary={summary}
        actions={
          mayChange && (
            <Button look="primary" onClick={() => setCreating(true)}>
              Create webhook
            </Button>
          )
        }
      />
      {secret && (
        <Panel title="New webhook">
          <ShownSecret
            label="Secret of the new webhook"
            secret={secret}
            hint="Messages are signed with this secret. Copy it to the receiver now. It is shown only once."
          />
        </Panel>
      )}
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Webhooks"
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={<EmptyState title="No webhooks yet." text={summary} />}
        />
      </div>
      {isCreating && (
        <WebhookDialog
          webhook={null}
          busy={create.isPending}
          failure={formProblem(create.error)}
          onSave={(draft) => create.mutate(draft)}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  )
}
