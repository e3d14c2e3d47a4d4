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
          {edge.draining ? 'Resume new boots' : 'Drain'}
        </Button>
      )}
      {mayRevoke && !edge.keyOrdered && (
        <Button look="bare" busy={rotateKey.isPending} onClick={() => setAsking('key')}>
          Rotate key
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
        title={edge.draining ? `Resume new boots on ${edge.name}?` : `Drain ${edge.name}?`}
        action={edge.draining ? 'Resume new boots' : `Drain ${edge.name}`}
        onConfirm={() => drain.mutate({ edgeId: edge.id, revision: edge.revision, draining: !edge.draining })}
      >
        {edge.draining ? (
          <p>${edge.name} again receives new boots according to its weight.</p>
        ) : (
          <DrainText edge={edge} />
        )}
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'key'}
        onOpenChange={close}
        title={`Rotate the key of ${edge.name}?`}
        action="Rotate key"
        onConfirm={() => rotateKey.mutate({ edgeId: edge.id })}
      >
        <p>
          The edge creates a new key with its next request, and the old key is refused from then on. Booting devices are
          not interrupted.
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
          The control plane refuses its requests from now on, and the site’s other edges get a new key. The edge keeps
          booting devices with its last desired state until you stop it on the server.
        </p>
        <p>You cannot undo this. To use the server again, enrol it with a new key.</p>
      </ConfirmDialog>
    </>
  )
}

function DrainText({ edge }: { edge: EdgeDetail }) {
  const others = edge.siteEdgeCount - 1
  return (
    <>
      <p>
        {others === 0
          ? 'This is the site’s only edge. It keeps taking new boots until the site has another edge.'
          : others === 1
            ? 'New boots go to the site’s other edge while it is online.'
            : `New boots go to the site’s ${others} other edges while at least one of them is online.`}
      </p>
      <p>
        {edge.devicesBooting === 0
          ? 'No devices are booting on this edge now.'
          : `${countOf(edge.devicesBooting, 'device')} booting here now will finish.`}{' '}
        Running devices stay on this edge.
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
      showToast({ title: `Could not update ${edge.name}.`, text: readableError(error), tone: 'failed' as const }),
  }
}
