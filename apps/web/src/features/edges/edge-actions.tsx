'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ConfirmButton } from '../../components/dialog'
import { useFailureToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type EdgeDetail = RouterOutputs['edge']['get']

/** Drain, resume and revoke. Each explains its effect and asks for confirmation. */
export function EdgeActions({ edge }: { edge: EdgeDetail }) {
  const mayDrain = useMay('edge.drain', { siteId: edge.siteId }) && edge.revokedAt === null
  const mayRevoke = useMay('edge.change', { siteId: edge.siteId }) && edge.revokedAt === null
  const options = useAfterChange(edge)
  const trpc = useTRPC()
  const drain = useMutation(trpc.edge.drain.mutationOptions(options))
  const revoke = useMutation(trpc.edge.revoke.mutationOptions(options))
  const rotateKey = useMutation(trpc.edge.rotateKey.mutationOptions(options))
  return (
    <>
      {mayDrain && (
        <ConfirmButton
          label={edge.draining ? 'Resume new boots' : 'Drain'}
          busy={drain.isPending}
          title={edge.draining ? `Resume new boots on ${edge.name}?` : `Drain ${edge.name}?`}
          action={edge.draining ? 'Resume new boots' : `Drain ${edge.name}`}
          onConfirm={() => drain.mutate({ edgeId: edge.id, revision: edge.revision, draining: !edge.draining })}
        >
          {edge.draining ? (
            <p>{edge.name} again receives new boots according to its weight.</p>
          ) : (
            <DrainText edge={edge} />
          )}
        </ConfirmButton>
      )}
      {mayRevoke && !edge.keyOrdered && (
        <ConfirmButton
          look="bare"
          label="Rotate key"
          busy={rotateKey.isPending}
          title={`Rotate the key of ${edge.name}?`}
          action="Rotate key"
          onConfirm={() => rotateKey.mutate({ edgeId: edge.id })}
        >
          <p>
            The edge creates a new key with its next request, and the old key is refused from then on. Booting devices
            are not interrupted.
          </p>
        </ConfirmButton>
      )}
      {mayRevoke && (
        <ConfirmButton
          look="bare"
          label="Revoke"
          busy={revoke.isPending}
          title={`Revoke ${edge.name}?`}
          action={`Revoke ${edge.name}`}
          onConfirm={() => revoke.mutate({ edgeId: edge.id })}
        >
          <p>
            The control plane refuses its requests from now on, and the site’s other edges get a new key. The edge keeps
            booting devices with its last desired state until you stop it on the server.
          </p>
          <p>You cannot undo this. To use the server again, enrol it with a new key.</p>
        </ConfirmButton>
      )}
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
  return {
    onSuccess: () => {
      void queryClient.invalidateQueries(trpc.edge.pathFilter())
      void queryClient.invalidateQueries(trpc.site.pathFilter())
    },
    onError: useFailureToast(`Could not update ${edge.name}.`),
  }
}
