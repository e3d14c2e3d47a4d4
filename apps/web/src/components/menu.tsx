'use client'

import { DropdownMenu } from 'radix-ui'
import { classNames } from '../lib/class-names'
import { Icon, type IconName } from './icon'

interface MenuItem {
  key: string
  label: string
  icon?: IconName
  onSelect: () => void
}

interface MenuProps {
  /** The purpose of the icon, for screen readers. */
  label: string
  icon?: IconName
  /** A frame like a button's, beside other buttons. */
  framed?: boolean
  items: MenuItem[]
}

export function Menu({ label, icon = 'more', framed = false, items }: MenuProps) {
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger
        aria-label={label}
        className={classNames(
          'grid size-7 place-items-center rounded-md hover:bg-hover data-[state=open]:bg-hover',
          framed ? 'border border-line-strong text-ink' : 'text-ink-faint hover:text-ink',
        )}
      >
        <Icon name={icon} size={14} />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="end"
          sideOffset={4}
          className="z-50 w-52 animate-[appear_120ms_ease-out] rounded-lg border border-line bg-raised p-1 shadow-black/10 shadow-lg"
        >
          {items.map((item) => (
            <DropdownMenu.Item
              key={item.key}
              onSelect={item.onSelect}
              className="flex h-8 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-ink text-sm outline-none data-[highlighted]:bg-hover"
            >
              {item.icon && <Icon name={item.icon} size={14} />}
              {item.label}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
