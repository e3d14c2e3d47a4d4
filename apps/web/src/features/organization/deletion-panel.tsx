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
        toast({ title: `${organization.name} stays.` })
      },
      onError: (error) => toast({ title: 'The deletion was not stopped.', text: readableError(error), tone: 'failed' }),
    }),
  )
  const { deleteAfter, deleteAskedAt, deletionGraceDays, suspendedAt } = organization
  return (
    <Panel title="Delete this organization">
      <div className="flex flex-wrap items-center justify-between gap-4">
        <p className="max-w-2xl text-ink-soft text-sm">
          {deleteAfter && deleteAskedAt ? (
            <>
              Asked for <Instant at={deleteAskedAt} />. Everything that it has is deleted after{' '}
              <Instant at={deleteAfter} full />. Until then everything goes on.
            </>
          ) : (
            <>
              Everything that it has goes: devices, vDisks, boots, members, keys, the audit log. That happens{' '}
              {deletionGraceDays} days after it is asked for, and can be stopped until then.
            </>
          )}
        </p>
        {deleteAfter ? (
          <Button look="primary" busy={cancel.isPending} onClick={() => cancel.mutate({})}>
            Keep the organization
          </Button>
        ) : (
          <Button look="danger" disabled={suspendedAt !== null} onClick={() => setAsking(true)}>
            Delete the organization
          </Button>
        )}
      </div>
      {isAsking && <AskDeletionDialog organization={organization} onClose={() => setAsking(false)} />}
    </Panel>
  )
}
