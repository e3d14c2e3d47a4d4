'use client'

import { Dialog } from 'radix-ui'
import { type ReactNode, useState } from 'react'
import { Icon } from '../../components/icon'
import { Logo } from './logo'
import { Navigation } from './navigation'

/** The navigation of narrow windows: a sheet from the left. */
export function MobileMenu({ children }: { children: ReactNode }) {
  const [open, setOpen] = useState(false)
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger
        aria-label="Open navigation"
        className="grid size-9 place-items-center rounded-md text-ink-soft hover:bg-hover hover:text-ink md:hidden"
      >
        <Icon name="menu" />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed inset-y-0 left-0 z-50 flex w-72 animate-[appear_140ms_ease-out] flex-col gap-4 border-line border-r bg-canvas p-3"
        >
          <div className="flex items-center justify-between px-2 pt-1">
            <Dialog.Title asChild>
              <div>
                <Logo />
              </div>
            </Dialog.Title>
            <Dialog.Close
              aria-label="Close navigation"
              className="grid size-9 place-items-center rounded-md text-ink-soft"
            >
              <Icon name="close" />
            </Dialog.Close>
          </div>
          <Navigation onNavigate={() => setOpen(false)} />
          <div className="mt-auto">{children}</div>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
