'use client'

import { Dialog as RadixDialog } from 'radix-ui'
import type { FormEvent, ReactNode } from 'react'
import { Button } from './button'

interface FormDialogProps {
  title: string
  /** What pressing the action does, and how long. */
  action: string
  /** Nothing that the form holds could be done. */
  disabled?: boolean
  busy?: boolean
  /** Why the last try did nothing. */
  failure?: string | null
  wide?: boolean
  onSubmit: () => void
  onClose: () => void
  children: ReactNode
}

/** A form above the page; Escape and Cancel leave everything as it is. */
export function FormDialog({
  title,
  action,
  disabled = false,
  busy = false,
  failure = null,
  wide = false,
  onSubmit,
  onClose,
  children,
}: FormDialogProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!busy && !disabled) onSubmit()
  }
  return (
    <RadixDialog.Root open onOpenChange={(open) => !open && onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <RadixDialog.Content
          aria-describedby={undefined}
          className={`fixed top-1/2 left-1/2 z-50 flex max-h-[calc(100vh-2rem)] -translate-x-1/2 -translate-y-1/2 flex-col rounded-lg border border-line bg-raised shadow-black/20 shadow-xl ${wide ? 'w-[min(680px,calc(100vw-2rem))]' : 'w-[min(480px,calc(100vw-2rem))]'}`}
        >
          <RadixDialog.Title className="px-5 pt-5 font-semibold text-ink text-lg">{title}</RadixDialog.Title>
          <form onSubmit={submit} className="flex min-h-0 flex-col">
            <div className="flex flex-col gap-4 overflow-y-auto px-5 py-4">{children}</div>
            <div className="flex flex-col gap-3 border-line border-t px-5 py-4">
              <p
                role="alert"
                className={failure ? 'rounded-md bg-failed-soft px-3 py-2 text-failed text-sm' : 'sr-only'}
              >
                {failure}
              </p>
              <div className="flex flex-wrap justify-end gap-2">
                <RadixDialog.Close asChild>
                  <Button>Cancel</Button>
                </RadixDialog.Close>
                <Button type="submit" look="primary" busy={busy} disabled={disabled}>
                  {action}
                </Button>
              </div>
            </div>
          </form>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  )
}
