'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { type OrderedDevice, type PowerOrder, powerText } from './power-text'

interface PowerConfirmProps {
  device: OrderedDevice
  /** What was chosen; null while nothing is. */
  order: PowerOrder | null
  onClose: () => void
}

/** Names the machine and what it loses, then gives the order. */
export function PowerConfirm({ device, order, onClose }: PowerConfirmProps) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const give = useMutation(
    trpc.device.orderPower.mutationOptions({
      onSuccess: (_result, { order: given }) => {
        void queryClient.invalidateQueries(trpc.device.pathFilter())
        showToast({
          title: `Sent a ${powerText[given].noun} order to ${device.name}.`,
          text: 'The device receives it with its next report.',
          tone: 'live',
        })
      },
      onError: (error) =>
        showToast({
          title: `Could not send the order to ${device.name}.`,
          text: readableError(error),
          tone: 'failed',
        }),
    }),
  )
  if (order === null) return null
  const { verb, does } = powerText[order]
  return (
    <ConfirmDialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`${verb} ${device.name}?`}
      action={`${verb} ${device.name}`}
      onConfirm={() => give.mutate({ deviceId: device.id, order })}
    >
      <p>
        {device.name} (<span className="font-mono text-xs">{device.mac}</span>) {does} with its next report. If the
        device does not report within a minute, the order expires.
      </p>
      <p>Data written to the device’s RAM is lost.</p>
    </ConfirmDialog>
  )
}
