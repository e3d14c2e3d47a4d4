'use client'

import { type FormEvent, useDeferredValue, useState } from 'react'
import { Button } from '../../components/button'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { Panel } from '../../components/panel'
import { usePicker } from '../../lib/use-picker'
import { NextInstants } from './next-instants'
import { bareTarget, fieldsOf, type ScheduleDraft, targetKey, whenOf, withTarget } from './schedule-draft'
import { powerText } from './schedule-text'
import type { ScheduleFields } from './schedule-types'
import { TargetsField } from './targets-field'
import { WhenField } from './when-field'

interface ScheduleEditorProps {
  farm: { id: string; name: string }
  /** The schedule's site until now. */
  site?: { id: string; name: string } | null
  initial: ScheduleDraft
  /** The verb, e.g. `Save`. */
  action: string
  busy: boolean
  /** Why the last try to save it failed. */
  failure: string | null
  onSave: (fields: ScheduleFields) => void
}

/** What a schedule says, beside when that would be. */
export function ScheduleEditor({ farm, site, initial, action, busy, failure, onSave }: ScheduleEditorProps) {
  const sites = usePicker('site', { farmId: farm.id })
  const [draft, setDraft] = useState(initial)
  const [problem, setProblem] = useState<string | null>(null)
  const change = (changed: Partial<ScheduleDraft>) => setDraft((known) => ({ ...known, ...changed }))
  const shown = useDeferredValue(draft)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const result = fieldsOf(draft)
    setProblem('problem' in result ? result.problem : null)
    if ('fields' in result && !busy) onSave(result.fields)
  }
  return (
    <form onSubmit={submit} aria-label="Schedule" className="grid items-start gap-5 lg:grid-cols-[1fr_360px]">
      <div className="flex min-w-0 flex-col gap-5">
        <Panel title="Schedule">
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label="Name" value={draft.name} onChange={(name) => change({ name })} />
            <ObjectPicker
              label="Site"
              picker={sites}
              value={draft.siteId ?? ''}
              first={[{ value: '', label: `All sites of ${farm.name}` }]}
              chosen={site && { value: site.id, label: site.name }}
              labelOf={({ name }) => name}
              onChange={(siteId) => {
                const place = sites.itemOf(siteId) ?? sites.items[0]
                change({ siteId: siteId || null, timeZone: place?.timeZone ?? 'UTC', targets: [] })
              }}
              hint="Changing the site resets devices and time zone."
            />
          </div>
        </Panel>
        <Panel title="When">
          <WhenField draft={draft} onChange={change} />
        </Panel>
        <Panel title="Devices">
          <TargetsField
            siteId={draft.siteId}
            targets={draft.targets}
            onAdd={(target) => setDraft(withTarget(draft, target))}
            onRemove={(target) =>
              change({ targets: draft.targets.filter((known) => targetKey(known) !== targetKey(target)) })
            }
          />
        </Panel>
        <Panel title="Power-on">
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField
              label="Start rate (devices per minute, per site)"
              type="number"
              value={draft.ratePerMinute}
              onChange={(ratePerMinute) => change({ ratePerMinute })}
              hint="Start times are evenly spaced."
            />
            <SelectField
              label="Power-on method"
              value={draft.power}
              options={Object.entries(powerText).map(([value, label]) => ({ value, label }))}
              onChange={(power) => change({ power: power as ScheduleDraft['power'] })}
              hint="The power command is set on the edge with --power-hook."
            />
          </div>
        </Panel>
        <div className="flex flex-wrap items-center justify-end gap-3">
          <p role="alert" className="text-failed text-sm">
            {problem ?? failure}
          </p>
          <Button type="submit" look="primary" busy={busy}>
            {action}
          </Button>
        </div>
      </div>
      <NextInstants
        farmId={farm.id}
        siteId={shown.siteId}
        when={whenOf(shown)}
        timeZone={shown.timeZone}
        targets={shown.targets.map(bareTarget)}
        ratePerMinute={Number(shown.ratePerMinute) || 1}
      />
    </form>
  )
}
