'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type EdgeDetail = RouterOutputs['edge']['get']

/** Drain, take new boots again, revoke: each asks first and says what will happen. */
export function EdgeActions({ edge }: { edge: EdgeDetail }) {
  const [asking, setAsking] = useState<'drain' | 'revoke' | 'key' | null>(null)
  const mayDrain = useMay('edge.drain', { siteId: edge.siteId }) && edge.revokedAt === null
  const mayRevoke = useMay('edge.change', { siteId: edge.siteId }) && edge.revokedAt === null
  const options = useAfterChange(edge)
  const trpc = useTRPC()
  const drain = useMutation(trpc.edge.drain.mutationOptions(options))
  const revoke = useMutation(trpc.edge.revoke.mutationOptions(options))
  const rotateKey = useMutation(trpc.edge.rotateKey.mutationOptions(options))
  const close = (open: boolean) => !open && setAsking(null)
  return (
    <>
      {mayDrain && (
        <Button busy={drain.isPending} onClick={() => setAsking('drain')}>
          {edge.draining ? 'Take new boots again' : 'Drain'}
        </Button>
      )}
      {mayRevoke && !edge.keyOrdered && (
        <Button look="bare" busy={rotateKey.isPending} onClick={() => setAsking('key')}>
          New key
        </Button>
      )}
      {mayRevoke && (
        <Button look="bare" busy={revoke.isPending} onClick={() => setAsking('revoke')}>
          Revoke
        </Button>
      )}
      <ConfirmDialog
        open={asking === 'drain'}
        onOpenChange={close}
        title={edge.draining ? `Let ${edge.name} take new boots again?` : `Drain ${edge.name}?`}
        action={edge.draining ? 'Take new boots' : `Drain ${edge.name}`}
        onConfirm={() => drain.mutate({ edgeId: edge.id, revision: edge.revision, draining: !edge.draining })}
      >
        {edge.draining ? (
          <p>It gets its share of the site’s new boots again, by its weight.</p>
        ) : (
          <DrainWords edge={edge} />
        )}
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'key'}
        onOpenChange={close}
        title={`A new key for ${edge.name}?`}
        action="Order a new key"
        onConfirm={() => rotateKey.mutate({ edgeId: edge.id })}
      >
        <p>
          The edge makes it itself as soon as it hears of this, and the old one is refused then. Booting devices notice
          nothing.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'revoke'}
        onOpenChange={close}
        title={`Revoke ${edge.name}?`}
        action={`Revoke ${edge.name}`}
        onConfirm={() => revoke.mutate({ edgeId: edge.id })}
      >
        <p>
          Its requests are refused from now on and the site’s other edges get a new key. It goes on booting devices by
          what it knows until somebody stops it there.
        </p>
        <p>This cannot be taken back: the server would have to be enrolled again with a new key.</p>
      </ConfirmDialog>
    </>
  )
}

function DrainWords({ edge }: { edge: EdgeDetail }) {
  const others = edge.siteEdgeCount - 1
  return (
    <>
      <p>
        {others === 0
          ? 'It is the site’s only edge: it goes on taking new boots until there is another.'
          : others === 1
            ? 'New boots go to the site’s other edge as long as that is up.'
            : `New boots go to the site’s ${others} other edges as long as one of them is up.`}
      </p>
      <p>
        {edge.devicesBooting === 0
          ? 'No device is booting here now.'
          : `${countOf(edge.devicesBooting, 'device')} booting here now will finish.`}{' '}
        Devices that run from it stay with it.
      </p>
    </>
  )
}

function useAfterChange(edge: EdgeDetail) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return {
    onSuccess: () => {
      void queryClient.invalidateQueries(trpc.edge.pathFilter())
      void queryClient.invalidateQueries(trpc.site.pathFilter())
    },
    onError: (error: unknown) =>
      showToast({ title: `${edge.name} is as it was.`, text: readableError(error), tone: 'failed' as const }),
  }
}
