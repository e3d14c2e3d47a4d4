'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/dialog'
import { Icon, type IconName } from '../../components/icon'
import { Menu } from '../../components/menu'
import { Mono } from '../../components/tag'
import { useFailureToast, useToast } from '../../components/toast'
import { useTRPC } from '../../lib/trpc'
import { type OrderedDevice, type PowerOrder, powerText } from './power-text'

const icons: Record<PowerOrder, IconName> = { restart: 'restart', power_off: 'power' }
const orders = ['restart', 'power_off'] as const

/** Restart and power off, for a running device's page. */
export function PowerButtons({ device }: { device: OrderedDevice }) {
  const [chosen, setChosen] = useState<PowerOrder | null>(null)
  return (
    <>
      {orders.map((order) => (
        <Button key={order} onClick={() => setChosen(order)}>
          <Icon name={icons[order]} size={14} />
          {powerText[order].verb}
        </Button>
      ))}
      <PowerConfirm device={device} order={chosen} onClose={() => setChosen(null)} />
    </>
  )
}

/** The same in a list's row. */
export function PowerMenu({ device }: { device: OrderedDevice }) {
  const [chosen, setChosen] = useState<PowerOrder | null>(null)
  return (
    <>
      <Menu
        label={`Power of ${device.name}`}
        icon="power"
        items={orders.map((order) => ({
          key: order,
          label: powerText[order].verb,
          icon: icons[order],
          onSelect: () => setChosen(order),
        }))}
      />
      <PowerConfirm device={device} order={chosen} onClose={() => setChosen(null)} />
    </>
  )
}

interface PowerConfirmProps {
  device: OrderedDevice
  /** The choice; null while there is none. */
  order: PowerOrder | null
  onClose: () => void
}

/** Names the machine and what it loses, then gives the order. */
function PowerConfirm({ device, order, onClose }: PowerConfirmProps) {
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
      onError: useFailureToast(`Could not send the order to ${device.name}.`),
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
        {device.name} (<Mono>{device.mac}</Mono>) {does} with its next report. If the device does not report within a
        minute, the order expires.
      </p>
      <p>Data written to the device’s RAM is lost.</p>
    </ConfirmDialog>
  )
}
