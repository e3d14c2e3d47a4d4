'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/panel'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { AskDeletionDialog } from './ask-deletion-dialog'
import type { Organization } from './organization-types'

/** For owners: the end of the organization, and its being stopped. */
export function DeletionPanel({ organization }: { organization: Organization }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const [isAsking, setAsking] = useState(false)
  const cancel = useMutation(
    trpc.organization.cancelDeletion.mutationOptions({
      onSuccess: () => {
        void queries.invalidateQueries()
        toast({ title: `Deletion of ${organization.name} cancelled.` })
      },
      onError: (error) =>
        toast({ title: 'Could not cancel the deletion.', text: readableError(error), tone: 'failed' }),
    }),
  )
  const { deleteAfter, deleteAskedAt, deletionGraceDays, suspendedAt } = organization
  return (
    <Panel title="Delete organization">
      <div className="flex flex-wrap items-center justify-between gap-4">
        <p className="max-w-2xl text-ink-soft text-sm">
          {deleteAfter && deleteAskedAt ? (
            <>
              Requested <Instant at={deleteAskedAt} />. All data is deleted after <Instant at={deleteAfter} full />.
              Everything keeps working until then.
            </>
          ) : (
            <>
              This deletes all devices, vDisks, boots, members, keys and the audit log, {deletionGraceDays} days after
              the request. You can cancel until then.
            </>
          )}
        </p>
        {deleteAfter ? (
          <Button look="primary" busy={cancel.isPending} onClick={() => cancel.mutate({})}>
            Cancel deletion
          </Button>
        ) : (
          <Button look="danger" disabled={suspendedAt !== null} onClick={() => setAsking(true)}>
            Delete organization
          </Button>
        )}
      </div>
      {isAsking && <AskDeletionDialog organization={organization} onClose={() => setAsking(false)} />}
    </Panel>
  )
}
