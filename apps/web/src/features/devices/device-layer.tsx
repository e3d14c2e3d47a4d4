'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { Panel } from '../../components/panel'
import { useToast } from '../../components/toast'
import { formatBytes } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { layerStanding } from './layer-words'

type DeviceDetail = RouterOutputs['device']['get']

const words = {
  private: { title: 'Own image', drop: 'Reset own image', thing: 'its own image' },
  edge_persistent: { title: 'Kept writes', drop: 'Drop kept writes', thing: 'its write cache' },
} as const

const link = 'rounded text-ink underline decoration-line-strong underline-offset-4 hover:decoration-ink'

/** What an edge keeps of the device's writes over its restarts, and how it goes; nothing where it keeps nothing. */
export function DeviceLayerPanel({ device }: { device: DeviceDetail }) {
  const [asks, setAsks] = useState(false)
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const mayChange = useMay('device.change')
  const drop = useMutation(
    trpc.device.dropWrites.mutationOptions({
      onSuccess: () => void queryClient.invalidateQueries(trpc.device.pathFilter()),
      onError: (error) => showToast({ title: 'It stays as it is.', text: readableError(error), tone: 'failed' }),
    }),
  )
  const { layer } = device
  if (!layer) return null
  const { title, drop: verb, thing } = words[layer.class]
  const isRunning = device.now.state === 'running'
  return (
    <Panel title={title}>
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        <p>
          {formatBytes(layer.usedBytes)} at{' '}
          <Link prefetch={false} href={`/edges/${layer.edge.id}`} className={link}>
            {layer.edge.name}
          </Link>
          , above{' '}
          {layer.version ? (
            <Link prefetch={false} href={`/vdisks/${layer.version.vdiskId}`} className={link}>
              version {layer.version.number} of {layer.version.vdiskName}
            </Link>
          ) : (
            'a version that is gone'
          )}
          .
        </p>
        <p>{layerStanding(layer)}</p>
        {layer.dropJobId && <p>{layer.edge.name} is asked to remove it.</p>}
        {mayChange && !layer.dropJobId && (
          <div>
            <Button disabled={isRunning || drop.isPending} onClick={() => setAsks(true)}>
              {verb}
            </Button>
            {isRunning && <p className="mt-1 text-ink-faint text-xs">Shut the device down first.</p>}
          </div>
        )}
      </div>
      <ConfirmDialog
        open={asks}
        onOpenChange={setAsks}
        title={`${verb} of ${device.name}?`}
        action={verb}
        onConfirm={() => drop.mutate({ deviceId: device.id, class: layer.class })}
      >
        <p>
          {formatBytes(layer.usedBytes)} that {device.name} has written are lost for good: {thing} at {layer.edge.name}{' '}
          is removed.
        </p>
        <p>
          {layer.currentNumber === null
            ? 'At its next boot it begins anew.'
            : `At its next boot it begins anew with what its vDisk gives it then; production devices boot version ${layer.currentNumber} now.`}
        </p>
      </ConfirmDialog>
    </Panel>
  )
}
