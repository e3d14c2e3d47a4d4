'use client'

import { type ReactNode, useId } from 'react'
import { classNames } from '../lib/class-names'
import { Button } from './button'

const control =
  'h-8 w-full rounded-md border border-line-strong bg-surface px-2 text-ink text-sm placeholder:text-ink-faint hover:bg-hover disabled:opacity-60 max-md:h-10'

interface TextFieldProps {
  label: string
  value: string
  onChange: (value: string) => void
  /** Explains the value and its format. */
  hint?: ReactNode
  placeholder?: string
  mono?: boolean
  type?: 'text' | 'number' | 'password' | 'date' | 'time'
  autoComplete?: string
  maxLength?: number
}

export function TextField({
  label,
  value,
  onChange,
  hint,
  placeholder,
  mono = false,
  type = 'text',
  maxLength = 64,
  autoComplete = type === 'password' ? 'current-password' : 'off',
}: TextFieldProps) {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint}>
      <input
        id={id}
        type={type}
        value={value}
        placeholder={placeholder}
        maxLength={maxLength}
        spellCheck={false}
        autoComplete={autoComplete}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.value)}
        className={classNames(control, mono && 'font-mono text-xs')}
      />
    </Labelled>
  )
}

interface TextAreaFieldProps {
  label: string
  value: string
  onChange: (value: string) => void
  hint?: ReactNode
  rows?: number
  mono?: boolean
}

/** Several lines of text. */
export function TextAreaField({ label, value, onChange, hint, rows = 4, mono = false }: TextAreaFieldProps) {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint}>
      <textarea
        id={id}
        value={value}
        rows={rows}
        spellCheck={false}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.value)}
        className={classNames(control, 'h-auto! py-1.5', mono && 'font-mono text-xs')}
      />
    </Labelled>
  )
}

interface FileFieldProps {
  label: string
  /** Null: none is chosen any more. */
  onChoose: (file: File | null) => void
  hint?: ReactNode
  /** Extensions and media types; all files without it. */
  accept?: string
}

/** A file of this computer. */
export function FileField({ label, onChoose, hint, accept }: FileFieldProps) {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint}>
      <input
        id={id}
        type="file"
        accept={accept}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={({ target }) => onChoose(target.files?.[0] ?? null)}
        className="w-full min-w-0 text-ink text-sm file:mr-3 file:h-8 file:rounded-md file:border file:border-line-strong file:bg-surface file:px-3 file:font-medium file:text-ink hover:file:bg-hover"
      />
    </Labelled>
  )
}

/** Fields that most people leave as they are. */
export function Fold({ title, children }: { title: string; children: ReactNode }) {
  return (
    <details className="min-w-0">
      <summary className="cursor-pointer rounded font-medium text-ink-soft text-xs hover:text-ink">{title}</summary>
      <div className="mt-3 flex min-w-0 flex-col gap-4">{children}</div>
    </details>
  )
}

export interface Option {
  value: string
  label: string
}

interface SelectFieldProps {
  label: string
  value: string
  options: Option[]
  onChange: (value: string) => void
  hint?: ReactNode
  disabled?: boolean
}

export function SelectField({ label, value, options, onChange, hint, disabled = false }: SelectFieldProps) {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint}>
      <select
        id={id}
        value={value}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.value)}
        className={control}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </Labelled>
  )
}

function Labelled({ id, label, hint, children }: { id: string; label: string; hint: ReactNode; children: ReactNode }) {
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <label htmlFor={id} className="font-medium text-ink-soft text-xs">
        {label}
      </label>
      {children}
      {hint && (
        <div id={`${id}-hint`} className="text-ink-soft text-xs">
          {hint}
        </div>
      )}
    </div>
  )
}

/** Something to know before continuing. */
export function Notice({ tone, children }: { tone: 'silent' | 'live'; children: ReactNode }) {
  return (
    <p
      className={classNames(
        'rounded-md px-3 py-2 text-xs',
        tone === 'silent' ? 'bg-silent-soft text-silent' : 'bg-live-soft text-live',
      )}
    >
      {children}
    </p>
  )
}

interface SubmitRowProps {
  action: string
  busy: boolean
  disabled?: boolean
  /** Why nothing was saved. */
  problem: string | null
}

/** The end of a form that is a page: its button, and its error. */
export function SubmitRow({ action, busy, disabled = false, problem }: SubmitRowProps) {
  return (
    <div className="flex flex-wrap items-center justify-end gap-3">
      <p role="alert" className="text-failed text-sm">
        {problem}
      </p>
      <Button type="submit" look="primary" busy={busy} disabled={disabled}>
        {action}
      </Button>
    </div>
  )
}
