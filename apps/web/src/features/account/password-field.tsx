'use client'

import { useId } from 'react'

interface PasswordFieldProps {
  label: string
  value: string
  onChange: (value: string) => void
  autoComplete: 'current-password' | 'new-password'
  hint?: string | undefined
}

const passwordLengthMax = 128

export function PasswordField({ label, value, onChange, autoComplete, hint }: PasswordFieldProps) {
  const id = useId()
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <label htmlFor={id} className="font-medium text-ink-soft text-xs">
        {label}
      </label>
      <input
        id={id}
        type="password"
        value={value}
        maxLength={passwordLengthMax}
        autoComplete={autoComplete}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.value)}
        className="h-8 w-full rounded-md border border-line-strong bg-surface px-2 text-ink text-sm hover:bg-hover max-md:h-10"
      />
      {hint && (
        <p id={`${id}-hint`} className="text-ink-soft text-xs">
          {hint}
        </p>
      )}
    </div>
  )
}
