'use client'

import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Button } from '../../components/button'
import { SubmitRow, TextField } from '../../components/field'
import { Icon } from '../../components/icon'
import { Panel } from '../../components/page'
import { classNames } from '../../lib/class-names'
import { useTRPC } from '../../lib/trpc'
import { EntryRow, type VdiskChoice } from './entry-row'
import {
  entriesMax,
  fieldsOf,
  type MenuDraft,
  type MenuFields,
  withChangedEntry,
  withEntry,
  withMovedEntry,
  withoutEntry,
} from './menu-draft'

interface MenuEditorProps {
  farmId: string
  initial: MenuDraft
  /** The verb, e.g. `Save`. */
  action: string
  busy: boolean
  /** Why the last try to save it failed. */
  failure: string | null
  readOnly: boolean
  onSave: (fields: MenuFields) => void
}

/** A menu's name, time-out and entries, beside how it looks on a device's screen. */
export function MenuEditor({ farmId, initial, action, busy, failure, readOnly, onSave }: MenuEditorProps) {
  const [draft, setDraft] = useState(initial)
  const choices = useQuery(useTRPC().bootMenu.choices.queryOptions({ farmId })).data ?? []
  const [problem, setProblem] = useState<string | null>(null)
  const changed = JSON.stringify(draft) !== JSON.stringify(initial)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const result = fieldsOf(draft)
    setProblem('problem' in result ? result.problem : null)
    if ('fields' in result && !busy) onSave(result.fields)
  }
  return (
    <form onSubmit={submit} className="grid items-start gap-5 lg:grid-cols-[1fr_360px]" aria-label="Boot menu">
      <div className="flex min-w-0 flex-col gap-5">
        <NamePanel draft={draft} onChange={setDraft} />
        <Panel
          title="Entries"
          aside={!readOnly && <AddButtons draft={draft} choices={choices} onAdd={setDraft} />}
          flush
        >
          <ol>
            {draft.entries.map((entry, index) => (
              <EntryRow
                key={entry.key}
                entry={entry}
                number={index + 1}
                count={draft.entries.length}
                isDefault={entry.key === draft.defaultKey}
                choices={choices}
                readOnly={readOnly}
                onChange={(change) => setDraft(withChangedEntry(draft, entry.key, change))}
                onMove={(by) => setDraft(withMovedEntry(draft, entry.key, by))}
                onRemove={() => setDraft(withoutEntry(draft, entry.key))}
                onDefault={() => setDraft({ ...draft, defaultKey: entry.key })}
              />
            ))}
          </ol>
        </Panel>
        {!readOnly && <SubmitRow action={action} busy={busy} disabled={!changed} problem={problem ?? failure} />}
      </div>
      <Panel title="Preview of the device’s screen" className="lg:sticky lg:top-4">
        <MenuPreview titles={draft.entries} defaultKey={draft.defaultKey} timeoutSeconds={draft.timeoutSeconds} />
      </Panel>
    </form>
  )
}

interface AddButtonsProps {
  draft: MenuDraft
  choices: VdiskChoice[]
  onAdd: (draft: MenuDraft) => void
}

function AddButtons({ draft, choices, onAdd }: AddButtonsProps) {
  if (draft.entries.length >= entriesMax) return <span>A menu holds at most 16 entries.</span>
  const used = new Set(draft.entries.flatMap(({ starts }) => (starts.kind === 'version' ? starts.vdiskId : [])))
  const next = choices.find(({ id }) => !used.has(id)) ?? choices[0]
  return (
    <>
      {next && (
        <Button
          onClick={() =>
            onAdd(
              withEntry(draft, {
                title: plainTitle(next.name),
                starts: { kind: 'version', vdiskId: next.id, versionId: null },
              }),
            )
          }
        >
          <Icon name="add" size={12} /> Add vDisk
        </Button>
      )}
      <Button onClick={() => onAdd(withEntry(draft, { title: 'Local disk', starts: { kind: 'local_disk' } }))}>
        <Icon name="add" size={12} /> Add local disk
      </Button>
    </>
  )
}

/** A vDisk's name as a loader can show it. */
function plainTitle(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/[^\x20-\x7e]/g, '')
    .slice(0, 64)
}

interface MenuPreviewProps {
  titles: { key: number; title: string }[]
  defaultKey: number
  /** Text of the form's field. */
  timeoutSeconds: string
}

/** Previews the menu as a loader draws it on the device's screen: white on black, in every theme. */
function MenuPreview({ titles, defaultKey, timeoutSeconds }: MenuPreviewProps) {
  return (
    <figure>
      <div className="overflow-hidden rounded-md border border-line-strong bg-[#101216] px-1 py-4 font-mono text-[#d6d9df] text-xs leading-5">
        <p className="px-3 pb-4 text-center">Bootfarm: select a boot entry</p>
        <ol>
          {titles.map(({ key, title }) => (
            <li
              key={key}
              aria-current={key === defaultKey ? 'true' : undefined}
              className={classNames(
                'flex justify-between gap-3 px-3',
                key === defaultKey && 'bg-[#d6d9df] text-[#101216]',
              )}
            >
              <span className="truncate whitespace-pre">{title || ' '}</span>
            </li>
          ))}
        </ol>
        <p className="px-3 pt-4 text-right">{timeoutSeconds || '–'} s</p>
      </div>
      <figcaption className="mt-2 text-ink-soft text-xs">
        The selected entry starts when the timeout expires. Pressing a key stops the timer.
      </figcaption>
    </figure>
  )
}

function NamePanel({ draft, onChange }: { draft: MenuDraft; onChange: (draft: MenuDraft) => void }) {
  return (
    <Panel title="Menu">
      <div className="grid gap-4 sm:grid-cols-[1fr_140px]">
        <TextField
          label="Name"
          value={draft.name}
          onChange={(name) => onChange({ ...draft, name })}
          hint="Shown in the dashboard only."
        />
        <TextField
          label="Timeout in seconds"
          type="number"
          value={draft.timeoutSeconds}
          onChange={(timeoutSeconds) => onChange({ ...draft, timeoutSeconds })}
          hint="1 to 3600."
        />
      </div>
    </Panel>
  )
}
