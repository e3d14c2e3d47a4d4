'use client'

import { type FormEvent, useId, useRef, useState } from 'react'
import { Button } from '../../components/button'
import { authClient } from './auth-client'
import { pathAfterSignIn } from './sign-in-path'

const passwordSizeMax = 128

export function SignInForm({ next }: { next: string | undefined }) {
  const [failure, setFailure] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const passwordField = useRef<HTMLInputElement>(null)
  const failureId = useId()

  async function signIn(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setFailure(null)
    const form = new FormData(event.currentTarget)
    const problem = await trySignIn(String(form.get('email')), String(form.get('password')))
    if (problem === null) {
      // A full load: the server renders the first page for the session that now exists.
      window.location.assign(pathAfterSignIn(next))
      return
    }
    setFailure(problem)
    setBusy(false)
    passwordField.current?.focus()
  }

  return (
    <form onSubmit={signIn} className="flex flex-col gap-4">
      <Field label="E-mail" name="email" type="email" autoComplete="username" />
      <Field
        label="Password"
        name="password"
        type="password"
        autoComplete="current-password"
        fieldRef={passwordField}
        describedBy={failure ? failureId : undefined}
      />
      <p
        id={failureId}
        role="alert"
        className={failure ? 'rounded-md bg-failed-soft px-3 py-2 text-failed text-sm' : 'sr-only'}
      >
        {failure}
      </p>
      <Button type="submit" look="primary" busy={busy} className="h-9">
        {busy ? 'Signing in' : 'Sign in'}
      </Button>
    </form>
  )
}

/** One sentence when it did not work, null when it did. */
async function trySignIn(email: string, password: string): Promise<string | null> {
  const { error } = await authClient.signIn.email({ email, password }).catch(() => ({ error: { status: 0 } }))
  if (!error) return null
  if (error.status === 429) return 'Too many attempts. Wait a minute and try again.'
  if (error.status === 0 || error.status >= 500)
    return 'The API does not answer, so nobody can sign in at the moment.'
  return 'E-mail or password is wrong.'
}

interface FieldProps {
  label: string
  name: string
  type: string
  autoComplete: string
  fieldRef?: React.Ref<HTMLInputElement>
  describedBy?: string | undefined
}

function Field({ label, name, type, autoComplete, fieldRef, describedBy }: FieldProps) {
  const id = useId()
  return (
    <div className="flex flex-col gap-1.5">
      <label htmlFor={id} className="font-medium text-ink-soft text-xs">
        {label}
      </label>
      <input
        id={id}
        ref={fieldRef}
        name={name}
        type={type}
        required
        maxLength={passwordSizeMax}
        autoComplete={autoComplete}
        aria-invalid={describedBy ? true : undefined}
        aria-describedby={describedBy}
        className="h-10 rounded-md border border-line-strong bg-surface px-3 text-ink text-lg sm:h-9 sm:text-base"
      />
    </div>
  )
}
