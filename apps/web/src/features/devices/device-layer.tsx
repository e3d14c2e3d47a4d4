'use client'

import { useMutation } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/dialog'
import { Panel } from '../../components/page'
import { useFailureToast } from '../../components/toast'
import { formatBytes } from '../../lib/format-quantity'
import { type RouterOutputs, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { layerStanding } from './layer-text'

type DeviceDetail = RouterOutputs['device']['get']

const words = {
  private: { title: 'Private image', drop: 'Reset private image', thing: 'the private image' },
  edge_persistent: { title: 'Stored writes', drop: 'Delete stored writes', thing: 'the write cache' },
} as const

const link = 'rounded text-ink underline decoration-line-strong underline-offset-4 hover:decoration-ink'

/** The writes of the device that an edge keeps across its restarts; nothing if it keeps none. */
export function DeviceLayerPanel({ device }: { device: DeviceDetail }) {
  const [asks, setAsks] = useState(false)
  const trpc = useTRPC()
  const mayChange = useMay('device.change')
  const drop = useMutation(
    trpc.device.dropWrites.mutationOptions({
      onSuccess: useRefresh(trpc.device.pathFilter()),
      onError: useFailureToast('Could not remove the stored writes.'),
    }),
  )
  const { layer } = device
  if (!layer) return null
  const { title, drop: verb, thing } = words[layer.class]
  const isRunning = device.now.state === 'running'
  return (
    <Panel title={title}>
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        <LayerPlace layer={layer} />
        <p>{layerStanding(layer)}</p>
        {layer.dropJobId && <p>Waiting for {layer.edge.name} to remove it.</p>}
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
          This permanently deletes {formatBytes(layer.usedBytes)} written by {device.name}: {thing} on {layer.edge.name}
          .
        </p>
        <p>
          {layer.currentNumber === null
            ? 'The next boot starts from the vDisk.'
            : `The next boot starts from the version assigned to the device. Production devices currently boot version ${layer.currentNumber}.`}
        </p>
      </ConfirmDialog>
    </Panel>
  )
}

function LayerPlace({ layer }: { layer: NonNullable<DeviceDetail['layer']> }) {
  return (
    <p>
      {formatBytes(layer.usedBytes)} on{' '}
      <Link prefetch={false} href={`/edges/${layer.edge.id}`} className={link}>
        {layer.edge.name}
      </Link>
      , based on{' '}
      {layer.version ? (
        <Link prefetch={false} href={`/vdisks/${layer.version.vdiskId}`} className={link}>
          version {layer.version.number} of {layer.version.vdiskName}
        </Link>
      ) : (
        'a deleted version'
      )}
      .
    </p>
  )
}
