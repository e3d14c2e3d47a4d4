'use client'

import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { Panel } from '../../components/panel'
import { ShownSecret } from '../../components/shown-secret'
import { EmptyState } from '../../components/states'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { type ApiKey, apiKeyColumns } from './api-key-columns'
import { CreateKeyDialog } from './create-key-dialog'

export function ApiKeysPage() {
  const trpc = useTRPC()
  const mayChange = useMay('api_key.change', {})
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const [leaving, setLeaving] = useState<ApiKey | null>(null)
  const query = useInfiniteQuery(
    trpc.apiKey.list.infiniteQueryOptions({}, { getNextPageParam: (page) => page.nextCursor }),
  )
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
        <Button look="bare" onClick={() => onRevoke(key)} aria-label={`Revoke ${key.name}`}>
          Revoke
        </Button>
      ),
  }
}

function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey | null; onClose: () => void }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const revoke = useMutation(
    trpc.apiKey.revoke.mutationOptions({
      onSuccess: () => queries.invalidateQueries(trpc.apiKey.list.pathFilter()),
      onError: (error) => toast({ title: 'Could not revoke the API key', text: readableError(error), tone: 'failed' }),
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
