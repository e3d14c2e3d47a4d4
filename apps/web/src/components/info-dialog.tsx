'use client'

import { Dialog as RadixDialog } from 'radix-ui'
import type { ReactNode } from 'react'
import { Button } from './button'

interface InfoDialogProps {
  title: string
  /** What the closing button says. */
  closing: string
  onClose: () => void
  children: ReactNode
}

/** Something to read, and to wait for, above the page; Escape closes it. */
export function InfoDialog({ title, closing, onClose, children }: InfoDialogProps) {
  return (
    <RadixDialog.Root open onOpenChange={(open) => !open && onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <RadixDialog.Content
          aria-describedby={undefined}
          // What was made for this dialog is lost with it: a press beside it is no wish to close it.
          onPointerDownOutside={(event) => event.preventDefault()}
          className="fixed top-1/2 left-1/2 z-50 flex max-h-[calc(100vh-2rem)] w-[min(680px,calc(100vw-2rem))] -translate-x-1/2 -translate-y-1/2 flex-col rounded-lg border border-line bg-raised shadow-black/20 shadow-xl"
        >
          <RadixDialog.Title className="px-5 pt-5 font-semibold text-ink text-lg">{title}</RadixDialog.Title>
          <div className="flex min-w-0 flex-col gap-4 overflow-y-auto px-5 py-4">{children}</div>
          <div className="flex justify-end border-line border-t px-5 py-4">
            <RadixDialog.Close asChild>
              <Button>{closing}</Button>
            </RadixDialog.Close>
          </div>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  )
}
