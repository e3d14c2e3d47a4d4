import { useEffect, useRef } from 'react'
import { Button } from '../../components/button'
import { TextField } from '../../components/field'
import type { RuleForm } from './copy-text'

interface RuleFieldsProps {
  title: string
  form: RuleForm
  onChange: (form: RuleForm) => void
  takesFocus?: boolean
  onRemove?: () => void
}

/** The rule of one site, or of all others. */
export function RuleFields({ title, form, onChange, takesFocus = false, onRemove }: RuleFieldsProps) {
  const change = (changed: Partial<RuleForm>) => onChange(Object.assign({}, form, changed))
  const fieldset = useRef<HTMLFieldSetElement>(null)
  useEffect(() => {
    if (takesFocus) fieldset.current?.querySelector('input')?.focus()
  }, [takesFocus])
  return (
    <fieldset ref={fieldset} className="min-w-0 rounded-md border border-line p-3">
      <legend className="px-1 font-medium text-ink text-sm">{title}</legend>
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          label="Number of edges"
          value={form.edges}
          placeholder="all"
          maxLength={2}
          onChange={(edges) => change({ edges })}
          hint="Empty: all. 0: none."
        />
        <TextField
          label="Limit per edge in MiB per second"
          value={form.rateMib}
          placeholder="none"
          maxLength={12}
          onChange={(rateMib) => change({ rateMib })}
          hint="To and from the control plane. Empty: no limit."
        />
        <TextField
          label="Start transfers from"
          type="time"
          value={form.from}
          onChange={(from) => change({ from })}
          hint="By the clocks of the site. Empty: at any time."
        />
        <TextField label="Start transfers until" type="time" value={form.to} onChange={(to) => change({ to })} />
      </div>
      {onRemove && (
        <div className="mt-3">
          <Button small aria-label={`Remove the rule of ${title}`} onClick={onRemove}>
            Remove
          </Button>
        </div>
      )}
    </fieldset>
  )
}
