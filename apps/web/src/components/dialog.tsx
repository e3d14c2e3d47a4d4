'use client'

import { AlertDialog, Dialog as RadixDialog } from 'radix-ui'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Button, type ButtonLook } from './button'

interface FormDialogProps {
  title: string
  /** The effect of the action, and how long it lasts. */
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

interface InfoDialogProps {
  title: string
  /** The label of the closing button. */
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
          // The content of this dialog is lost with it: a click beside it does not close it.
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

interface ConfirmDialogProps {
  open: boolean
  onOpenChange: (open: boolean) => void
  title: string
  /** The effect, and the loss that it causes. */
  children: ReactNode
  /** The verb and what it is done to. */
  action: string
  onConfirm: () => void
}

/** Asks before something that cannot be taken back; Cancel has the focus, Escape is no. */
export function ConfirmDialog({ open, onOpenChange, title, children, action, onConfirm }: ConfirmDialogProps) {
  return (
    <AlertDialog.Root open={open} onOpenChange={onOpenChange}>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <AlertDialog.Content className="fixed top-1/2 left-1/2 z-50 w-[min(440px,calc(100vw-2rem))] -translate-x-1/2 -translate-y-1/2 rounded-lg border border-line bg-raised p-5 shadow-black/20 shadow-xl">
          <AlertDialog.Title className="font-semibold text-ink text-lg">{title}</AlertDialog.Title>
          <AlertDialog.Description asChild>
            <div className="mt-2 flex flex-col gap-2 text-ink-soft text-sm">{children}</div>
          </AlertDialog.Description>
          <div className="mt-5 flex flex-wrap justify-end gap-2">
            <AlertDialog.Cancel asChild>
              <Button>Cancel</Button>
            </AlertDialog.Cancel>
            <AlertDialog.Action asChild>
              <Button look="danger" onClick={onConfirm}>
                {action}
              </Button>
            </AlertDialog.Action>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  )
}

interface ConfirmButtonProps extends Omit<ConfirmDialogProps, 'open' | 'onOpenChange'> {
  label: string
  look?: ButtonLook
  busy?: boolean
  className?: string | undefined
  'aria-label'?: string | undefined
}

/** A button that asks before it does something. */
export function ConfirmButton(props: ConfirmButtonProps) {
  const { label, look = 'quiet', busy = false, className, 'aria-label': name, ...dialog } = props
  const [asking, setAsking] = useState(false)
  return (
    <>
      <Button look={look} busy={busy} className={className} aria-label={name} onClick={() => setAsking(true)}>
        {label}
      </Button>
      <ConfirmDialog {...dialog} open={asking} onOpenChange={setAsking} />
    </>
  )
}
