'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Banner } from '../../components/banner'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { countOf } from '../../lib/format-quantity'
import { formProblem, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'

type Collection = RouterOutputs['collection']['get']

/** Above the devices of one collection, while keys wait: a whole classroom is approved at once. */
export function ApproveKeys({ collectionId }: { collectionId: string }) {
  const { data: collection } = useQuery(useTRPC().collection.get.queryOptions({ collectionId }))
  const [seen, setSeen] = useState<Collection | null>(null)
  const mayChange = useMay('device.change', { collectionId, ...(collection && { siteId: collection.siteId }) })
  if (!collection || collection.keys.waitingCount === 0) return null
  return (
    <Banner
      label="Keys that wait"
      tone="silent"
      action={
        mayChange && (
          <Button small onClick={() => setSeen(collection)}>
            Approve waiting keys
          </Button>
        )
      }
    >
      {countOf(collection.keys.waitingCount, 'device')} of {collection.name}{' '}
      {collection.keys.waitingCount === 1 ? 'waits' : 'wait'} for approval of{' '}
      {collection.keys.waitingCount === 1 ? 'its' : 'their'} key.
      {seen && <ApproveKeysDialog collection={seen} onClose={() => setSeen(null)} />}
    </Banner>
  )
}

function ApproveKeysDialog({ collection, onClose }: { collection: Collection; onClose: () => void }) {
  const { id, name, keys } = collection
  const saved = useSaved(onClose)
  const approve = useMutation(useTRPC().device.approveKeys.mutationOptions({ onSuccess: saved }))
  const devices = countOf(keys.waitingCount, 'device')
  return (
    <FormDialog
      title={`Approve the keys of ${devices}?`}
      action={`Approve ${countOf(keys.waitingCount, 'key')}`}
      busy={approve.isPending}
      failure={formProblem(approve.error)}
      onSubmit={() =>
        keys.waitingUntil &&
        approve.mutate({ collectionId: id, claimedUntil: keys.waitingUntil, waitingCount: keys.waitingCount })
      }
      onClose={onClose}
    >
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        <p>
          From their next boot on, {devices} of {name} open their private images, stored writes and maintenance versions
          with the keys that they have proved, and no other machine does.
        </p>
        <p>
          Approve them if only these machines were on their network when they booted: compare the number with the
          machines in the room, and some fingerprints with <code>bootfarm-target identity</code>.
        </p>
        {keys.alarmCount > 0 && (
          <p>{countOf(keys.alarmCount, 'alarm')} of this collection must be decided on the devices’ own pages.</p>
        )}
      </div>
    </FormDialog>
  )
}
