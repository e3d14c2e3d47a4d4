'use client'

import { SelectField, TextField } from '../../components/field'
import { classNames } from '../../lib/class-names'
import { type Rhythm, type ScheduleDraft, weekdays, whenOf } from './schedule-draft'

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
export function WhenField({ draft, onChange }: WhenFieldProps) {
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
              // What the form said until now is what the expression begins with.
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

/** All that the browser knows, UTC first, and the schedule's own in any case. */
function zonesWith(own: string): string[] {
  return [...new Set(['UTC', own, ...Intl.supportedValuesOf('timeZone')])]
}
