'use client'

import { type FormEvent, type ReactNode, useState } from 'react'
import { Button } from '../../components/button'
import { TextField } from '../../components/field'
import type { RouterOutputs } from '../../lib/trpc'

interface AccountFormProps {
  action: string
  disabled: boolean
  /** The reason of the failure in one sentence; null after a success. */
  onSubmit: () => Promise<string | null>
  children: ReactNode
}

/** Fields of a panel with one button; the error is shown between them. */
export function AccountForm({ action, disabled, onSubmit, children }: AccountFormProps) {
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  async function submit(event: FormEvent) {
    event.preventDefault()
    if (isBusy || disabled) return
    setBusy(true)
    setFailure(await onSubmit())
    setBusy(false)
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      {children}
      <p role="alert" className={failure ? 'rounded-md bg-failed-soft px-3 py-2 text-failed text-sm' : 'sr-only'}>
        {failure}
      </p>
      <Button type="submit" busy={isBusy} disabled={disabled} className="self-start">
        {action}
      </Button>
    </form>
  )
}

interface PasswordFieldProps {
  label: string
  value: string
  onChange: (value: string) => void
  autoComplete: 'current-password' | 'new-password'
  hint?: string | undefined
}

const passwordLengthMax = 128

export function PasswordField(props: PasswordFieldProps) {
  return <TextField {...props} type="password" maxLength={passwordLengthMax} />
}

/** One request of a dialog: whether it is in progress, and why the last one failed. */
export function useAsked(request: () => Promise<string | null>) {
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  async function ask() {
    setBusy(true)
    setFailure(await request())
    setBusy(false)
  }
  return { failure, isBusy, ask }
}

/** The signed-in person's own account, as the API gives it. */
export type Account = RouterOutputs['session']['account']
