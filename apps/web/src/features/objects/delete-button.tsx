'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import type { ReactNode } from 'react'
import { ConfirmButton } from '../../components/dialog'
import { useFailureToast, useToast } from '../../components/toast'
import { useTRPCClient } from '../../lib/trpc'

interface Target {
  kind: 'farm' | 'site' | 'collection' | 'device' | 'vdisk' | 'version' | 'store'
  id: string
}

interface DeleteButtonProps {
  target: Target
  /** Its name for people. */
  name: string
  /** What is deleted with it, and what stays. */
  children: ReactNode
  /** Where to go afterwards, from the page of the deleted object. */
  leaveTo?: string
  label?: string
  compact?: boolean
}

/** Puts an object into the trash, once that is confirmed, and says how it comes back. */
export function DeleteButton({ target, name, children, leaveTo, label, compact }: DeleteButtonProps) {
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  const remove = useMutation({
    mutationFn: useRemove(target),
    onSuccess: () => {
      if (leaveTo) router.push(leaveTo)
      void queryClient.invalidateQueries()
      showToast({
        title: `${name} moved to trash.`,
        text: (
          <Link href="/trash" className="underline underline-offset-4">
            Restore within 30 days
          </Link>
        ),
      })
    },
    onError: useFailureToast(`Could not delete ${name}.`),
  })
  return (
    <ConfirmButton
      label="Delete"
      busy={remove.isPending}
      className={compact ? 'h-7!' : ''}
      aria-label={label}
      title={`Delete ${name}?`}
      action={`Delete ${name}`}
      onConfirm={() => remove.mutate()}
    >
      {children}
      <p>You can restore it from the trash for 30 days.</p>
    </ConfirmButton>
  )
}

function useRemove({ kind, id }: Target): () => Promise<unknown> {
  const client = useTRPCClient()
  const remove: Record<Target['kind'], () => Promise<unknown>> = {
    farm: () => client.farm.remove.mutate({ farmId: id }),
    site: () => client.site.remove.mutate({ siteId: id }),
    collection: () => client.collection.remove.mutate({ collectionId: id }),
    device: () => client.device.remove.mutate({ deviceId: id }),
    vdisk: () => client.vdisk.remove.mutate({ vdiskId: id }),
    version: () => client.vdisk.removeVersion.mutate({ versionId: id }),
    store: () => client.store.remove.mutate({ storeId: id }),
  }
  return remove[kind]
}
