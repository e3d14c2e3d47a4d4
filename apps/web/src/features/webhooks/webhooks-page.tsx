'use client'

import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { Panel } from '../../components/panel'
import { ShownSecret } from '../../components/shown-secret'
import { EmptyState } from '../../components/states'
import type { Column } from '../../components/table'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { WebhookDialog } from './webhook-dialog'
import { WebhookState } from './webhook-state'
import type { Webhook } from './webhook-text'

const columns: Column<Webhook>[] = [
  {
    title: 'Name',
    cell: ({ id, name }) => (
      <Link
        prefetch={false}
        href={`/webhooks/${id}`}
        className="rounded font-medium text-ink underline-offset-4 hover:underline"
      >
        {name}
      </Link>
    ),
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

export function WebhooksPage() {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayChange = useMay('webhook.change', {})
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const query = useInfiniteQuery(
    trpc.webhook.list.infiniteQueryOptions({}, { getNextPageParam: (page) => page.nextCursor }),
  )
  const create = useMutation(
    trpc.webhook.create.mutationOptions({
      onSuccess: async (made) => {
        setSecret(made.secret)
        setCreating(false)
        await queries.invalidateQueries(trpc.webhook.list.pathFilter())
      },
    }),
  )
  return (
    <Page>
      <PageHeader
        title="Webhooks"
        summary="Send events to chat or monitoring."
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
          empty={<EmptyState title="No webhooks yet." text="Send events to chat or monitoring." />}
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
