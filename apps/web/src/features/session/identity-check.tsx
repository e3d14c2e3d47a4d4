'use client'

import type { AppRouter } from '@bootfarm/api/router'
import { useMutation, useQuery } from '@tanstack/react-query'
import type { TRPCLink } from '@trpc/client'
import { observable } from '@trpc/server/observable'
import { useEffect, useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { formProblem, isConfirmationNeeded, useTRPC } from '../../lib/trpc'

/** Asks the person for the password again; resolves with whether it was right. */
type Ask = () => Promise<boolean>

/** Connects the link, which hears of refusals, with the dialog on the page. */
export class IdentityCheck {
  #ask: Ask | null = null

  /** @returns the end of it */
  offer(ask: Ask): () => void {
    this.#ask = ask
    return () => {
      if (this.#ask === ask) this.#ask = null
    }
  }

  async ask(): Promise<boolean> {
    return (await this.#ask?.()) ?? false
  }
}

/** Sends a change again, once, after the person has proved who sits there. */
export function identityLink(check: IdentityCheck): TRPCLink<AppRouter> {
  return () =>
    ({ op, next }) =>
      observable((observer) => {
        let current: { unsubscribe: () => void } | undefined
        const send = (isAgain: boolean) => {
          current = next(op).subscribe({
            next: (value) => observer.next(value),
            complete: () => observer.complete(),
            error(error) {
              if (isAgain || op.type !== 'mutation' || !isConfirmationNeeded(error)) observer.error(error)
              else check.ask().then((isProved) => (isProved ? send(true) : observer.error(error)))
            },
          })
        }
        send(false)
        return () => current?.unsubscribe()
      })
}

/** The dialog that `identityLink` opens, once in the dashboard. */
export function IdentityDialog({ check }: { check: IdentityCheck }) {
  const [answer, setAnswer] = useState<((isProved: boolean) => void) | null>(null)
  useEffect(() => check.offer(() => new Promise((resolve) => setAnswer(() => resolve))), [check])
  if (!answer) return null
  const close = (isProved: boolean) => {
    setAnswer(null)
    answer(isProved)
  }
  return <PasswordDialog onDone={close} />
}

function PasswordDialog({ onDone }: { onDone: (isProved: boolean) => void }) {
  const trpc = useTRPC()
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const { data: account } = useQuery(trpc.session.account.queryOptions())
  const confirm = useMutation(trpc.session.confirm.mutationOptions({ onSuccess: () => onDone(true) }))
  return (
    <FormDialog
      title="Confirm that it is you"
      action="Confirm"
      busy={confirm.isPending}
      disabled={password === ''}
      failure={formProblem(confirm.error)}
      onClose={() => onDone(false)}
      onSubmit={() => confirm.mutate({ password, ...(code.trim() ? { code: code.trim() } : {}) })}
    >
      <p className="text-ink-soft text-sm">
        This change asks for your password, unless you signed in or entered it within the last ten minutes.
      </p>
      <TextField label="Your password" type="password" value={password} onChange={setPassword} maxLength={128} />
      {account?.hasTotp && (
        <TextField
          label="Authentication code"
          value={code}
          onChange={setCode}
          maxLength={20}
          mono
          hint="Six digits from your authenticator."
        />
      )}
    </FormDialog>
  )
}
