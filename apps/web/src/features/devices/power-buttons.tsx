'use client'

import { DropdownMenu } from 'radix-ui'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Icon, type IconName } from '../../components/icon'
import { PowerConfirm } from './power-confirm'
import { type OrderedDevice, type PowerOrder, powerWords } from './power-words'

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
          {powerWords[order].verb}
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
      <DropdownMenu.Root>
        <DropdownMenu.Trigger
          aria-label={`Power of ${device.name}`}
          className="grid size-7 place-items-center rounded-md text-ink-faint hover:bg-hover hover:text-ink data-[state=open]:bg-hover"
        >
          <Icon name="power" size={14} />
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <DropdownMenu.Content
            align="end"
            sideOffset={4}
            className="z-50 w-44 animate-[appear_120ms_ease-out] rounded-lg border border-line bg-raised p-1 shadow-black/10 shadow-lg"
          >
            {orders.map((order) => (
              <DropdownMenu.Item
                key={order}
                onSelect={() => setChosen(order)}
                className="flex h-8 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-ink text-sm outline-none data-[highlighted]:bg-hover"
              >
                <Icon name={icons[order]} size={14} /> {powerWords[order].verb}
              </DropdownMenu.Item>
            ))}
          </DropdownMenu.Content>
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
      <PowerConfirm device={device} order={chosen} onClose={() => setChosen(null)} />
    </>
  )
}
