'use client'

import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton, ConfirmDialog } from '../../components/dialog'
import { Age, Instant } from '../../components/instant'
import { EmptyState, Page, PageHeader, Panel, Unknown } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { ShownSecret } from '../../components/shown-secret'
import type { Column } from '../../components/table'
import { Tag, type Tone } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { type Listed, nextPage, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { CreateKeyDialog } from './create-key-dialog'

type ApiKey = Listed<'apiKey'>

const states: Record<ApiKey['state'], { word: string; tone: Tone; title: string }> = {
  active: { word: 'Active', tone: 'ready', title: 'This key can be used.' },
  expired: { word: 'Expired', tone: 'silent', title: 'This key has expired.' },
  revoked: { word: 'Revoked', tone: 'plain', title: 'This key was revoked.' },
  without_creator: {
    word: 'Inactive',
    tone: 'silent',
    title: 'The member who created this key has left, so the key no longer works.',
  },
}

/** The role's name for people. */
const roleText = (role: ApiKey['role']) => role.replace('_', ' ')

const apiKeyColumns: Column<ApiKey>[] = [
  {
    title: 'Name',
    cell: ({ name, prefix }) => (
      <span className="flex flex-col">
        <span className="font-medium text-ink">{name}</span>
        <span className="font-mono text-ink-faint text-xs">{prefix}…</span>
      </span>
    ),
  },
  {
    title: 'State',
    cell: ({ state }) => (
      <Tag tone={states[state].tone} title={states[state].title}>
        {states[state].word}
      </Tag>
    ),
  },
  {
    title: 'Access',
    from: 'sm',
    wide: true,
    cell: ({ role, placeName, permissions }) => (
      <span className="flex flex-col">
        <span>
          {roleText(role)}, {placeName ?? 'whole organization'}
        </span>
        {permissions && (
          <span className="truncate text-ink-faint text-xs" title={permissions.join(', ')}>
            only {permissions.join(', ')}
          </span>
        )}
      </span>
    ),
  },
  {
    title: 'Created by',
    from: 'lg',
    cell: ({ createdBy }) => createdBy ?? <Unknown label="former member" />,
  },
  {
    title: 'Expires',
    from: 'md',
    cell: ({ expiresAt }) => (expiresAt ? <Instant at={expiresAt} /> : <span className="text-ink-faint">never</span>),
  },
  {
    title: 'Last used',
    from: 'sm',
    cell: ({ lastUsedAt }) => (lastUsedAt ? <Age at={lastUsedAt} /> : <span className="text-ink-faint">never</span>),
  },
]

export function ApiKeysPage() {
  const trpc = useTRPC()
  const mayChange = useMay('api_key.change', {})
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const [leaving, setLeaving] = useState<ApiKey | null>(null)
  const query = useInfiniteQuery(trpc.apiKey.list.infiniteQueryOptions({}, nextPage))
  const create = mayChange && (
    <Button look="primary" onClick={() => setCreating(true)}>
      Create API key
    </Button>
  )
  return (
    <Page>
      <PageHeader
        title="API keys"
        summary={
          <>
            Credentials for scripts.{' '}
            <a href="/api/docs" className="underline underline-offset-4">
              API reference
            </a>
          </>
        }
        actions={create}
      />
      {secret && (
        <Panel title="New API key">
          <ShownSecret
            label="Secret of the new API key"
            secret={secret}
            hint="Copy the secret now. It is shown only once and is not stored."
          />
        </Panel>
      )}
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="API keys"
          query={query}
          columns={[...apiKeyColumns, ...(mayChange ? [revokeColumn(setLeaving)] : [])]}
          rowKey={({ id }) => id}
          empty={<EmptyState title="No API keys yet." text="An API key gives a script the permissions of a role." />}
        />
      </div>
      {isCreating && (
        <CreateKeyDialog
          onCreated={(made) => {
            setSecret(made)
            setCreating(false)
          }}
          onClose={() => setCreating(false)}
        />
      )}
      <RevokeDialog apiKey={leaving} onClose={() => setLeaving(null)} />
    </Page>
  )
}

function revokeColumn(onRevoke: (key: ApiKey) => void) {
  return {
    title: 'Actions',
    align: 'right' as const,
    cell: (key: ApiKey) =>
      key.revokedAt === null && (
        <span className="inline-flex flex-wrap justify-end gap-1">
          {key.state !== 'expired' && <TakeOverButton apiKey={key} />}
          <Button look="bare" onClick={() => onRevoke(key)} aria-label={`Revoke ${key.name}`}>
            Revoke
          </Button>
        </span>
      ),
  }
}

/** Not for one's own keys. */
function TakeOverButton({ apiKey }: { apiKey: ApiKey }) {
  const trpc = useTRPC()
  const { data: me } = useQuery(trpc.session.me.queryOptions())
  const takeOver = useMutation(
    trpc.apiKey.takeOver.mutationOptions({
      onSuccess: useRefresh(trpc.apiKey.list.pathFilter()),
      onError: useFailureToast('Could not take over the API key'),
    }),
  )
  if (!me || me.user.id === apiKey.createdByUserId) return null
  return (
    <ConfirmButton
      label="Take over"
      look="bare"
      busy={takeOver.isPending}
      aria-label={`Take over ${apiKey.name}`}
      title={`Take over ${apiKey.name}?`}
      action="Take over"
      onConfirm={() => takeOver.mutate({ apiKeyId: apiKey.id })}
    >
      <p>The key then has your permissions, up to its own, and works as long as you are a member.</p>
    </ConfirmButton>
  )
}

function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey | null; onClose: () => void }) {
  const trpc = useTRPC()
  const revoke = useMutation(
    trpc.apiKey.revoke.mutationOptions({
      onSuccess: useRefresh(trpc.apiKey.list.pathFilter()),
      onError: useFailureToast('Could not revoke the API key'),
    }),
  )
  return (
    <ConfirmDialog
      open={apiKey !== null}
      onOpenChange={(open) => !open && onClose()}
      title={`Revoke ${apiKey?.name ?? ''}?`}
      action="Revoke API key"
      onConfirm={() => apiKey && revoke.mutate({ apiKeyId: apiKey.id })}
    >
      <p>Scripts that use this key are refused from their next request. You cannot undo this.</p>
    </ConfirmDialog>
  )
}
