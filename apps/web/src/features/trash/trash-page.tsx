'use client'

import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/dialog'
import { Instant } from '../../components/instant'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { useFailureToast, useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { type Listed, nextPage, useTRPC, useTRPCClient } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type Deletion = Listed<'trash'>

const kinds: Record<Deletion['kind'], string> = {
  farm: 'farm',
  site: 'site',
  collection: 'collection',
  device: 'device',
  vdisk: 'vDisk',
  version: 'version',
  store: 'store',
}

const columns: Column<Deletion>[] = [
  { title: 'Name', cell: (deletion) => <span className="font-medium">{deletion.name}</span> },
  { title: 'Type', cell: (deletion) => kinds[deletion.kind] },
  {
    title: 'Includes',
    from: 'md',
    wide: true,
    cell: (deletion) => deletion.with.map(({ noun, count }) => countOf(count, noun)).join(', ') || 'nothing',
  },
  { title: 'Deleted by', from: 'lg', cell: (deletion) => deletion.deletedByName },
  { title: 'Deleted', from: 'sm', align: 'right', cell: ({ deletedAt }) => <Instant at={deletedAt} /> },
  { title: 'Expires', from: 'lg', align: 'right', cell: ({ purgedAt }) => <Instant at={purgedAt} /> },
  { title: 'Actions', align: 'right', cell: (deletion) => <TrashActions deletion={deletion} /> },
]

export function TrashPage() {
  const trpc = useTRPC()
  const query = useInfiniteQuery(trpc.trash.list.infiniteQueryOptions({}, nextPage))
  return (
    <Page>
      <PageHeader title="Trash" summary="Deleted objects, newest first. They are deleted permanently after 30 days." />
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Trash"
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState
              title="The trash is empty."
              text="Deleted objects appear here. You can restore them for 30 days."
            />
          }
        />
      </div>
    </Page>
  )
}

function TrashActions({ deletion }: { deletion: Deletion }) {
  const [asking, setAsking] = useState(false)
  const client = useTRPCClient()
  const mayPurge = useMay('trash.purge')
  const restore = useTrashMutation(useRestore(deletion), `${deletion.name} restored.`)
  const purge = useTrashMutation(
    () => client.trash.purge.mutate({ deletionId: deletion.id }),
    `${deletion.name} deleted permanently.`,
  )
  return (
    <span className="inline-flex gap-2">
      {deletion.mayRestore && (
        <Button small busy={restore.isPending} aria-label={`Restore ${deletion.name}`} onClick={() => restore.mutate()}>
          Restore
        </Button>
      )}
      {mayPurge && (
        <Button
          small
          busy={purge.isPending}
          aria-label={`Delete ${deletion.name} permanently`}
          onClick={() => setAsking(true)}
        >
          Delete permanently
        </Button>
      )}
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Delete ${deletion.name} permanently?`}
        action="Delete permanently"
        onConfirm={() => purge.mutate()}
      >
        <p>This deletes the object and everything it includes. You cannot undo this.</p>
      </ConfirmDialog>
    </span>
  )
}

function useTrashMutation(mutationFn: () => Promise<unknown>, done: string) {
  const queryClient = useQueryClient()
  const showToast = useToast()
  return useMutation({
    mutationFn,
    onSuccess: () => {
      void queryClient.invalidateQueries()
      showToast({ title: done, tone: 'ready' })
    },
    onError: useFailureToast('Could not update the trash.'),
  })
}

function useRestore({ kind, id: deletionId }: Deletion): () => Promise<unknown> {
  const client = useTRPCClient()
  const restore: Record<Deletion['kind'], () => Promise<unknown>> = {
    farm: () => client.farm.restore.mutate({ deletionId }),
    site: () => client.site.restore.mutate({ deletionId }),
    collection: () => client.collection.restore.mutate({ deletionId }),
    device: () => client.device.restore.mutate({ deletionId }),
    vdisk: () => client.vdisk.restore.mutate({ deletionId }),
    version: () => client.vdisk.restoreVersion.mutate({ deletionId }),
    store: () => client.store.restore.mutate({ deletionId }),
  }
  return restore[kind]
}
