'use client'

import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import type { RouterOutputs } from '../../lib/trpc'
import { type DraftEntry, titleProblem } from './menu-draft'

export type VdiskChoice = RouterOutputs['bootMenu']['choices'][number]

const control =
  'h-8 rounded-md border border-line-strong bg-surface px-2 text-ink text-sm hover:bg-hover disabled:opacity-60 max-md:h-10'
const localDisk = 'local_disk'

interface EntryRowProps {
  entry: DraftEntry
  /** From 1. */
  number: number
  count: number
  isDefault: boolean
  choices: VdiskChoice[]
  readOnly: boolean
  onChange: (change: Partial<DraftEntry>) => void
  onMove: (by: -1 | 1) => void
  onRemove: () => void
  onDefault: () => void
}

export function EntryRow(props: EntryRowProps) {
  const { entry, number, count, isDefault, readOnly, onChange, onMove, onRemove, onDefault } = props
  const problem = titleProblem(entry.title)
  const problemId = `entry-${entry.key}-problem`
  return (
    <li className="flex flex-col gap-2 border-line border-t px-4 py-3 first:border-t-0" aria-label={`Entry ${number}`}>
      <div className="flex items-center gap-2">
        <span aria-hidden="true" className="w-4 text-right text-ink-faint text-xs">
          {number}
        </span>
        <input
          aria-label={`Title of entry ${number}`}
          aria-invalid={problem !== null}
          aria-describedby={problem ? problemId : undefined}
          value={entry.title}
          maxLength={64}
          disabled={readOnly}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => onChange({ title: event.target.value })}
          className={`${control} min-w-0 flex-1 font-mono text-xs`}
        />
        {!readOnly && (
          <span className="flex">
            <RowButton label={`Move entry ${number} up`} icon="up" disabled={number === 1} onClick={() => onMove(-1)} />
            <RowButton
              label={`Move entry ${number} down`}
              icon="down"
              disabled={number === count}
              onClick={() => onMove(1)}
            />
            <RowButton label={`Remove entry ${number}`} icon="close" disabled={count === 1} onClick={onRemove} />
          </span>
        )}
      </div>
      <div className="flex flex-wrap items-center gap-2 pl-6">
        <StartsChoice {...props} />
        <label className="ml-auto flex items-center gap-1.5 text-ink-soft text-xs max-md:h-10">
          <input
            type="radio"
            name="default-entry"
            checked={isDefault}
            disabled={readOnly}
            onChange={onDefault}
            className="accent-(--ink)"
          />
          default
        </label>
      </div>
      {problem && (
        <p id={problemId} className="pl-6 text-failed text-xs">
          {`${problem.charAt(0).toUpperCase()}${problem.slice(1)}`}
        </p>
      )}
    </li>
  )
}

/** Chooses what the entry boots, and which version of a vDisk. */
function StartsChoice({ entry: { starts }, number, choices, readOnly, onChange }: EntryRowProps) {
  const vdisk = starts.kind === 'version' ? choices.find(({ id }) => id === starts.vdiskId) : undefined
  const versions = vdisk?.versions ?? []
  return (
    <>
      <select
        aria-label={`Target of entry ${number}`}
        value={starts.kind === 'version' ? starts.vdiskId : localDisk}
        disabled={readOnly}
        onChange={({ target: { value } }) =>
          onChange({
            starts: value === localDisk ? { kind: 'local_disk' } : { kind: 'version', vdiskId: value, versionId: null },
          })
        }
        className={`${control} max-w-full`}
      >
        <option value={localDisk}>Local disk</option>
        {choices.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      {starts.kind === 'version' && (
        <select
          aria-label={`Version of entry ${number}`}
          value={starts.versionId ?? ''}
          disabled={readOnly}
          onChange={({ target: { value } }) => onChange({ starts: { ...starts, versionId: value || null } })}
          className={control}
        >
          <option value="">{newestText(versions[0]?.number)}</option>
          {versions.map(({ id, number: version }) => (
            <option key={id} value={id}>
              version {version}
            </option>
          ))}
        </select>
      )}
      {vdisk && versions.length === 0 && (
        <span className="text-silent text-xs">This vDisk has no version yet. Devices hide this entry.</span>
      )}
    </>
  )
}

function newestText(newest: number | undefined): string {
  return newest === undefined ? 'latest' : `latest (now ${newest})`
}

interface RowButtonProps {
  label: string
  icon: 'up' | 'down' | 'close'
  disabled: boolean
  onClick: () => void
}

/** Stays focusable where it does nothing, so that the keyboard's place is kept when an entry reaches an end. */
function RowButton({ label, icon, disabled, onClick }: RowButtonProps) {
  return (
    <Button
      look="bare"
      aria-label={label}
      title={label}
      aria-disabled={disabled || undefined}
      onClick={() => !disabled && onClick()}
      className={`px-2 ${disabled ? 'opacity-40' : ''}`}
    >
      <Icon name={icon} size={14} />
    </Button>
  )
}
