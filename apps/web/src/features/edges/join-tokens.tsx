'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { useMutation, useQuery } from '@tanstack/react-query'
import { ConfirmButton } from '../../components/dialog'
import { Age, Instant } from '../../components/instant'
import { EmptyState, ErrorState, Panel, Unknown } from '../../components/page'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { useFailureToast } from '../../components/toast'
import { readableError, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type JoinToken = RouterOutputs['edge']['joinTokens']['items'][number]
type Site = Pick<RouterOutputs['site']['get'], 'id' | 'farmId'>

const tokenColumns: Column<JoinToken>[] = [
  { title: 'Created', cell: ({ createdAt }) => <Age at={createdAt} /> },
  { title: 'By', wide: true, cell: ({ createdByName }) => createdByName ?? <Unknown label="former member" /> },
  { title: 'Expires', from: 'sm', cell: ({ expiresAt }) => <Instant at={expiresAt} /> },
]

/** The tokens of a site that no edge has used yet: whoever has one can add an edge. */
export function JoinTokens({ site }: { site: Site }) {
  const mayAdd = useMay('edge.change', { farmId: site.farmId, siteId: site.id })
  return mayAdd ? <TokenPanel siteId={site.id} /> : null
}

function TokenPanel({ siteId }: { siteId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.edge.joinTokens.queryOptions({ siteId }))
  const revoke = useMutation(
    trpc.edge.revokeJoinToken.mutationOptions({
      onSuccess: useRefresh(trpc.edge.joinTokens.pathFilter()),
      onError: useFailureToast('Could not revoke the join token.'),
    }),
  )
  const actions: Column<JoinToken> = {
    title: 'Actions',
    align: 'right',
    cell: ({ id, createdByName }) => (
      <ConfirmButton
        label="Revoke"
        look="bare"
        aria-label={`Revoke the join token of ${createdByName ?? 'a former member'}`}
        title="Revoke this join token?"
        action="Revoke join token"
        onConfirm={() => revoke.mutate({ siteId, joinTokenId: id })}
      >
        <p>A server that is being installed with this token can no longer become an edge of this site.</p>
      </ConfirmButton>
    ),
  }
  return (
    <Panel title="Join tokens" flush>
      {query.isPending && <TableSkeleton label="Join tokens" rowCount={1} />}
      {query.error && !query.data && (
        <ErrorState title="Could not load the join tokens." text={readableError(query.error)} />
      )}
      {query.data?.items.length === 0 && (
        <EmptyState
          title="No unused join tokens."
          text="Add edge creates a token, which one server can use for an hour."
        />
      )}
      {query.data && query.data.items.length > 0 && (
        <Table
          label="Unused join tokens of this site"
          columns={[...tokenColumns, actions]}
          rows={query.data.items}
          rowKey={({ id }) => id}
        />
      )}
    </Panel>
  )
}
