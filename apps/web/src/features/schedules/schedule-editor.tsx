'use client'

import { type FormEvent, useDeferredValue, useState } from 'react'
import { SelectField, SubmitRow, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { Panel } from '../../components/page'
import { classNames } from '../../lib/class-names'
import { usePicker } from '../../lib/use-picker'
import { NextInstants } from './next-instants'
import {
  bareTarget,
  fieldsOf,
  type Rhythm,
  type ScheduleDraft,
  targetKey,
  weekdays,
  whenOf,
  withTarget,
} from './schedule-draft'
import { powerText } from './schedule-text'
import type { ScheduleFields } from './schedule-types'
import { TargetsField } from './targets-field'

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

/** A schedule's settings, beside the resulting times. */
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
        <PowerPanel draft={draft} onChange={change} />
        <SubmitRow action={action} busy={busy} problem={problem ?? failure} />
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

interface WhenFieldProps {
  draft: ScheduleDraft
  onChange: (change: Partial<ScheduleDraft>) => void
}

const rhythms: { value: Rhythm; label: string }[] = [
  { value: 'weekly', label: 'Weekly' },
  { value: 'daily', label: 'Daily' },
  { value: 'once', label: 'Once' },
  { value: 'cron', label: 'Cron expression' },
]

/** A friendly choice, the expression that it comes to, and the zone in which it counts. */
function WhenField({ draft, onChange }: WhenFieldProps) {
  const when = whenOf(draft)
  const isFixed = draft.rhythm !== 'cron'
  return (
    <div className="flex flex-col gap-4">
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField
          label="Repeat"
          value={draft.rhythm}
          options={rhythms}
          onChange={(rhythm) =>
            onChange({
              rhythm: rhythm as Rhythm,
              // The expression starts with the form's previous content.
              ...(rhythm === 'cron' && when.kind === 'cron' ? { expression: when.expression } : {}),
            })
          }
        />
        <SelectField
          label="Time zone"
          value={draft.timeZone}
          options={zonesWith(draft.timeZone).map((zone) => ({
            value: zone,
            label: zone.replaceAll('_', ' '),
          }))}
          onChange={(timeZone) => onChange({ timeZone })}
        />
      </div>
      {draft.rhythm === 'weekly' && <DaysField days={draft.days} onChange={(days) => onChange({ days })} />}
      <div className="grid gap-4 sm:grid-cols-2">
        {draft.rhythm === 'once' && (
          <TextField label="Date" type="date" value={draft.date} onChange={(date) => onChange({ date })} />
        )}
        {isFixed && (
          <TextField label="Time of day" type="time" value={draft.time} onChange={(time) => onChange({ time })} />
        )}
        {!isFixed && (
          <TextField
            label="Expression"
            mono
            maxLength={120}
            value={draft.expression}
            onChange={(expression) => onChange({ expression })}
            hint="Minute, hour, day of month, month, day of week: 30 6 * * 1-5."
          />
        )}
      </div>
      {isFixed && when.kind === 'cron' && (
        <p className="text-ink-faint text-xs">
          Cron expression: <code className="font-mono">{when.expression}</code>
        </p>
      )}
    </div>
  )
}

function DaysField({ days, onChange }: { days: number[]; onChange: (days: number[]) => void }) {
  return (
    <fieldset>
      <legend className="mb-1.5 font-medium text-ink-soft text-xs">Days</legend>
      <div className="flex flex-wrap gap-1.5">
        {weekdays.map(({ number, short, name }) => {
          const isOn = days.includes(number)
          return (
            <button
              key={number}
              type="button"
              aria-pressed={isOn}
              aria-label={name}
              onClick={() => onChange(isOn ? days.filter((day) => day !== number) : [...days, number])}
              className={classNames(
                'h-8 w-11 rounded-md border text-sm max-md:h-10',
                isOn ? 'border-transparent bg-ink text-canvas' : 'border-line-strong text-ink-soft hover:bg-hover',
              )}
            >
              {short}
            </button>
          )
        })}
      </div>
    </fieldset>
  )
}

/** All that the browser knows, UTC first, and always the schedule's own. */
function zonesWith(own: string): string[] {
  return [...new Set(['UTC', own, ...Intl.supportedValuesOf('timeZone')])]
}

interface PowerPanelProps {
  draft: ScheduleDraft
  onChange: (changed: Partial<ScheduleDraft>) => void
}

function PowerPanel({ draft, onChange }: PowerPanelProps) {
  return (
    <Panel title="Power-on">
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Start rate (devices per minute, per site)"
          type="number"
          value={draft.ratePerMinute}
          onChange={(ratePerMinute) => onChange({ ratePerMinute })}
          hint="Start times are evenly spaced."
        />
        <SelectField
          label="Power-on method"
          value={draft.power}
          options={Object.entries(powerText).map(([value, label]) => ({ value, label }))}
          onChange={(power) => onChange({ power: power as ScheduleDraft['power'] })}
          hint="The power command is set on the edge with --power-hook."
        />
      </div>
    </Panel>
  )
}
