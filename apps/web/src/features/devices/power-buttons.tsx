'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { Icon, type IconName } from '../../components/icon'
import { Menu } from '../../components/menu'
import { PowerConfirm } from './power-confirm'
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
