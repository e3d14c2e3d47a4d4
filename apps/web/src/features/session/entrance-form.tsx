'use client'

import { type FormEvent, useId, useRef, useState } from 'react'
import { Button } from '../../components/button'

const textLengthMax = 254

interface EntranceField {
  label: string
  name: string
  type: 'text' | 'email' | 'password'
  autoComplete: string
  hint?: string
}

interface EntranceFormProps {
  fields: EntranceField[]
  action: string
  /** While it is in progress. */
  working: string
  /** The reason of the failure in one sentence; null after a success. */
  onSubmit: (values: Record<string, string>) => Promise<string | null>
}

/** A form before the dashboard: an error is shown beside it, and the last field gets the focus. */
export function EntranceForm({ fields, action, working, onSubmit }: EntranceFormProps) {
  const [failure, setFailure] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const lastField = useRef<HTMLInputElement>(null)
  const failureId = useId()

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setFailure(null)
    const form = new FormData(event.currentTarget)
    const problem = await onSubmit(Object.fromEntries(fields.map(({ name }) => [name, String(form.get(name))])))
    setFailure(problem)
    setBusy(false)
    if (problem) lastField.current?.focus()
  }

  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      {fields.map((field, index) => (
        <Field
          key={field.name}
          field={field}
          fieldRef={index === fields.length - 1 ? lastField : undefined}
          failureId={failure && index === fields.length - 1 ? failureId : undefined}
        />
      ))}
      <p
        id={failureId}
        role="alert"
        className={failure ? 'rounded-md bg-failed-soft px-3 py-2 text-failed text-sm' : 'sr-only'}
      >
        {failure}
      </p>
      <Button type="submit" look="primary" busy={busy} className="h-9">
        {busy ? working : action}
      </Button>
    </form>
  )
}

interface FieldProps {
  field: EntranceField
  fieldRef: React.Ref<HTMLInputElement> | undefined
  failureId: string | undefined
}

function Field({ field: { label, name, type, autoComplete, hint }, fieldRef, failureId }: FieldProps) {
  const id = useId()
  const described = [hint ? `${id}-hint` : null, failureId].filter(Boolean).join(' ')
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
        maxLength={textLengthMax}
        autoComplete={autoComplete}
        aria-invalid={failureId ? true : undefined}
        aria-describedby={described || undefined}
        className="h-10 rounded-md border border-line-strong bg-surface px-3 text-ink text-lg sm:h-9 sm:text-base"
      />
      {hint && (
        <p id={`${id}-hint`} className="text-ink-faint text-xs">
          {hint}
        </p>
      )}
    </div>
  )
}

/** The API's rule: apps/api/src/rules/person.ts. */
export const newPasswordField: EntranceField = {
  label: 'New password',
  name: 'password',
  type: 'password',
  autoComplete: 'new-password',
  hint: 'At least 12 characters. It must not contain your name or e-mail address.',
}

export const newAccountFields: EntranceField[] = [
  { label: 'Your name', name: 'name', type: 'text', autoComplete: 'name' },
  newPasswordField,
]
