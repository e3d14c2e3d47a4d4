'use client'

import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { type Picker, usePicker } from '../../lib/use-picker'
import { PatternHint } from './adopt-dialog'
import { architectureNames, type Conditions, noConditions, type Rule } from './rule-text'

interface RuleDialogProps {
  /** Null for a new one. */
  rule: Rule | null
  siteId: string
  /** The name of what the rule names now. */
  nameOf: (id: string) => string
  busy: boolean
  failure: string | null
  onSave: (rule: Rule) => void
  onClose: () => void
}

const kinds = [
  { value: 'adopt', label: 'Adopt into a collection' },
  { value: 'copy', label: 'Adopt with a device as template' },
  { value: 'ignore', label: 'Ignore' },
] as const
type Kind = (typeof kinds)[number]['value']

const texts = ['macPrefix', 'vendorClassPrefix', 'vendorClassContains', 'relayNetwork'] as const
const textLabels: Record<(typeof texts)[number], { label: string; placeholder: string }> = {
  macPrefix: { label: 'MAC address begins with', placeholder: 'any, or 00:50:56' },
  vendorClassPrefix: { label: 'Vendor class begins with', placeholder: 'any, or PXEClient:Arch:00007' },
  vendorClassContains: { label: 'Vendor class contains', placeholder: 'any, or HTTPClient' },
  relayNetwork: { label: 'Relay agent network', placeholder: 'any, or 10.20.0.0/16' },
}

export function RuleDialog({ rule, siteId, nameOf, busy, failure, onSave, onClose }: RuleDialogProps) {
  const [conditions, setConditions] = useState<Conditions>(rule?.conditions ?? noConditions)
  const [kind, setKind] = useState<Kind>(rule?.action.kind ?? 'adopt')
  const action = rule?.action
  const [pattern, setPattern] = useState(action && action.kind !== 'ignore' ? action.namePattern : 'pc-{nn}')
  const [chosenId, setChosenId] = useState(chosenBy(action))
  const devices = usePicker('device', { siteId })
  const collections = usePicker('collection', { siteId })
  const offered: Picker<{ id: string; name: string }> = kind === 'copy' ? devices : collections
  const isKept = action?.kind === kind && chosenBy(action) === chosenId
  const chosen = isKept ? { id: chosenId, name: nameOf(chosenId) } : (offered.itemOf(chosenId) ?? offered.items[0])
  return (
    <FormDialog
      title={rule ? 'Edit rule' : 'New rule'}
      action="Save"
      busy={busy}
      disabled={kind !== 'ignore' && (!chosen || pattern.trim() === '')}
      failure={failure}
      wide
      onClose={onClose}
      onSubmit={() => onSave({ conditions, action: actionOf(kind, pattern, chosen?.id ?? '') })}
    >
      <ConditionFields conditions={conditions} onChange={setConditions} />
      <fieldset className="grid gap-3 sm:grid-cols-2">
        <legend className="mb-2 text-ink-soft text-sm">Then</legend>
        <SelectField
          label="Action"
          value={kind}
          options={[...kinds]}
          onChange={(value) => setKind(kinds.find((one) => one.value === value)?.value ?? 'adopt')}
        />
        {kind !== 'ignore' && (
          <>
            <ObjectPicker
              label={kind === 'copy' ? 'Template device' : 'Collection'}
              picker={offered}
              value={chosen?.id ?? ''}
              chosen={chosen && { value: chosen.id, label: chosen.name }}
              onChange={setChosenId}
              hint={kind === 'copy' && 'Copies its collection, boot programs, menu and enabled state.'}
            />
            <TextField label="Name pattern" value={pattern} onChange={setPattern} hint={<PatternHint />} />
          </>
        )}
      </fieldset>
    </FormDialog>
  )
}

function chosenBy(action: Rule['action'] | undefined): string {
  if (!action || action.kind === 'ignore') return ''
  return action.kind === 'copy' ? action.templateDeviceId : action.collectionId
}

function actionOf(kind: Kind, namePattern: string, id: string): Rule['action'] {
  if (kind === 'ignore') return { kind }
  return kind === 'copy' ? { kind, namePattern, templateDeviceId: id } : { kind, namePattern, collectionId: id }
}

interface ConditionFieldsProps {
  conditions: Conditions
  onChange: (conditions: Conditions) => void
}

function ConditionFields({ conditions, onChange }: ConditionFieldsProps) {
  const set = (name: keyof Conditions, value: string) =>
    onChange({ ...conditions, [name]: value === '' ? null : value })
  return (
    <fieldset className="grid gap-3 sm:grid-cols-2">
      <legend className="mb-2 text-ink-soft text-sm">When all of these match</legend>
      {texts.map((name) => (
        <TextField
          key={name}
          {...textLabels[name]}
          value={conditions[name] ?? ''}
          onChange={(value) => set(name, value)}
          mono
        />
      ))}
      <SelectField
        label="Firmware"
        value={conditions.architecture ?? ''}
        options={[
          { value: '', label: 'any' },
          ...Object.entries(architectureNames).map(([value, label]) => ({ value, label })),
        ]}
        onChange={(value) => set('architecture', value)}
      />
    </fieldset>
  )
}
