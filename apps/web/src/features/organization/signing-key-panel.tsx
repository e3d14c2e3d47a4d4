'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/dialog'
import { Instant } from '../../components/instant'
import { ErrorState, Panel } from '../../components/page'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { formatCount } from '../../lib/format-quantity'
import { readableError, useRefresh, useTRPC } from '../../lib/trpc'

type SigningKey = RouterOutputs['organization']['signingKeys']['keys'][number]

const columnsOf = (edgeCount: number): Column<SigningKey>[] => [
  {
    title: 'Key',
    cell: ({ id }) => (
      <span className="block truncate font-mono text-xs max-sm:max-w-36" title={id}>
        {id}
      </span>
    ),
  },
  {
    title: 'Public key',
    from: 'lg',
    wide: true,
    cell: ({ publicKey }) => <span className="font-mono text-ink-soft text-xs">{publicKey}</span>,
  },
  { title: 'Created', from: 'sm', cell: ({ createdAt }) => <Instant at={createdAt} /> },
  {
    title: 'Edges',
    align: 'right',
    meaning: 'Edges whose current desired state is signed with this key',
    cell: ({ edgeCount: count }) => `${formatCount(count)} of ${formatCount(edgeCount)}`,
  },
  {
    title: 'State',
    align: 'right',
    cell: ({ isNewest }) => (isNewest ? <Tag tone="ready">Active</Tag> : <Tag>Replaced</Tag>),
  },
]

/** The keys that have signed the organization's desired states, and how far the edges have followed. */
export function SigningKeyPanel() {
  const trpc = useTRPC()
  const [isAsking, setAsking] = useState(false)
  const query = useQuery(trpc.organization.signingKeys.queryOptions({}))
  const rotate = useMutation(
    trpc.edge.rotateSigningKey.mutationOptions({
      onSuccess: useRefresh(trpc.organization.signingKeys.pathFilter()),
      onError: useFailureToast('Could not rotate the signing key.'),
    }),
  )
  return (
    <Panel
      title="Signing key"
      flush
      aside={
        <Button busy={rotate.isPending} onClick={() => setAsking(true)} small>
          Rotate signing key
        </Button>
      }
    >
      {query.isPending && <TableSkeleton label="Signing keys" rowCount={2} />}
      {query.error && !query.data && (
        <ErrorState title="Could not load the signing keys." text={readableError(query.error)} />
      )}
      {query.data && (
        <Table
          label="Signing keys"
          columns={columnsOf(query.data.edgeCount)}
          rows={query.data.keys}
          rowKey={({ id }) => id}
        />
      )}
      <ConfirmDialog
        open={isAsking}
        onOpenChange={setAsking}
        title="Rotate the signing key?"
        action="Rotate signing key"
        onConfirm={() => rotate.mutate()}
      >
        <p>
          Online edges receive the new key within about a second, offline edges when they reconnect. Booting is not
          interrupted. The old key is deleted.
        </p>
        <p>
          Create a backup afterwards. Edges do not trust a control plane that is restored from a backup made before this
          change.
        </p>
      </ConfirmDialog>
    </Panel>
  )
}
