'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/panel'
import { ErrorState } from '../../components/states'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Tag } from '../../components/tag'
import { useToast } from '../../components/toast'
import { formatCount } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'

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
    title: 'Public half',
    from: 'lg',
    wide: true,
    cell: ({ publicKey }) => <span className="font-mono text-ink-soft text-xs">{publicKey}</span>,
  },
  { title: 'Since', from: 'sm', cell: ({ createdAt }) => <Instant at={createdAt} /> },
  {
    title: 'Edges',
    align: 'right',
    meaning: 'Edges whose last desired state is signed by it',
    cell: ({ edgeCount: count }) => `${formatCount(count)} of ${formatCount(edgeCount)}`,
  },
  {
    title: 'State',
    align: 'right',
    cell: ({ isNewest }) => (isNewest ? <Tag tone="ready">Signs</Tag> : <Tag>Replaced</Tag>),
  },
]

/** The keys that have signed the organization's desired states, and how far the edges have followed. */
export function SigningKeyPanel() {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const [isAsking, setAsking] = useState(false)
  const query = useQuery(trpc.organization.signingKeys.queryOptions({}))
  const rotate = useMutation(
    trpc.edge.rotateSigningKey.mutationOptions({
      onSuccess: () => queries.invalidateQueries(trpc.organization.signingKeys.pathFilter()),
      onError: (error) => toast({ title: 'The key was not changed.', text: readableError(error), tone: 'failed' }),
    }),
  )
  return (
    <Panel
      title="Signing key"
      flush
      aside={
        <Button busy={rotate.isPending} onClick={() => setAsking(true)} className="h-7!">
          New signing key
        </Button>
      }
    >
      {query.isPending && <TableSkeleton label="Signing keys" rowCount={2} />}
      {query.error && !query.data && (
        <ErrorState title="The keys could not be loaded." text={readableError(query.error)} />
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
        title="Sign by a new key?"
        action="Make a new key"
        onConfirm={() => rotate.mutate()}
      >
        <p>
          Edges that are online take it with their next state, within a second or so; those that are away when they come
          back. Booting is not interrupted. The old key is forgotten.
        </p>
        <p>Make a backup afterwards: edges do not believe a control plane that is restored to before this change.</p>
      </ConfirmDialog>
    </Panel>
  )
}
