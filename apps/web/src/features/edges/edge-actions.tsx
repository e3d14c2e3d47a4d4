'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { TextField } from '../../components/field'
import { useFailureToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'

type EdgeDetail = RouterOutputs['edge']['get']

/** Rename, drain, resume, rotate the key and revoke. Each explains its effect and asks for confirmation. */
export function EdgeActions({ edge }: { edge: EdgeDetail }) {
  const mayDrain = useMay('edge.drain', { siteId: edge.siteId }) && edge.revokedAt === null
  const mayRevoke = useMay('edge.change', { siteId: edge.siteId }) && edge.revokedAt === null
  const options = useAfterChange(edge)
  const trpc = useTRPC()
  const drain = useMutation(trpc.edge.drain.mutationOptions(options))
  const rotateKey = useMutation(trpc.edge.rotateKey.mutationOptions(options))
  const [open, setOpen] = useState<'rename' | 'revoke' | null>(null)
  const close = () => setOpen(null)
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
        <>
          <Button look="bare" onClick={() => setOpen('rename')}>
            Rename
          </Button>
          <Button look="bare" onClick={() => setOpen('revoke')}>
            Revoke
          </Button>
        </>
      )}
      {open === 'rename' && <RenameDialog edge={edge} onClose={close} />}
      {open === 'revoke' && <RevokeDialog edge={edge} onClose={close} />}
    </>
  )
}

function RenameDialog({ edge, onClose }: { edge: EdgeDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(edge)
  const [name, setName] = useState(seen.name)
  const update = useMutation(trpc.edge.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Rename ${seen.name}`}
      action="Save"
      saving={update}
      disabled={name.trim() === ''}
      onSave={(revision = seen.revision) => update.mutate({ edgeId: seen.id, revision, name })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} hint="The server’s own host name stays as it is." />
    </ObjectDialog>
  )
}

/** It cannot be undone, so it asks for the name. */
function RevokeDialog({ edge, onClose }: { edge: EdgeDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(edge)
  const [name, setName] = useState('')
  const revoke = useMutation(trpc.edge.revoke.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Revoke ${seen.name}?`}
      action={`Revoke ${seen.name}`}
      saving={revoke}
      disabled={name.trim() !== seen.name}
      onSave={(revision = seen.revision) => revoke.mutate({ edgeId: seen.id, revision, name })}
      onClose={onClose}
    >
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        <p>
          The control plane refuses its requests from now on, and the site’s other edges get a new key. The edge keeps
          booting devices with its last desired state until you stop it on the server.
        </p>
        <p>You cannot undo this. To use the server again, enrol it with a new join token.</p>
      </div>
      <TextField label={`Enter ${seen.name} to confirm`} value={name} onChange={setName} />
    </ObjectDialog>
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
