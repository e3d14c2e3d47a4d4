'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { SelectField, TextField } from '../../components/field'
import { Icon } from '../../components/icon'
import { ObjectPicker } from '../../components/object-picker'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { targetKey } from './schedule-draft'
import { targetText } from './schedule-text'
import type { ScheduleTarget } from './schedule-types'

interface TargetsFieldProps {
  siteId: string | null
  targets: ScheduleTarget[]
  onAdd: (target: ScheduleTarget) => void
  onRemove: (target: ScheduleTarget) => void
}

/** The devices to start: collections, tags and single devices, in any combination. */
export function TargetsField({ siteId, targets, onAdd, onRemove }: TargetsFieldProps) {
  const [kind, setKind] = useState<ScheduleTarget['kind']>('collection')
  return (
    <div className="flex flex-col gap-4">
      <ul className="flex flex-wrap gap-2" aria-label="Selected">
        {targets.map((target) => (
          <li
            key={targetKey(target)}
            className="inline-flex h-8 items-center gap-1 rounded-md border border-line-strong pl-2.5 text-sm"
          >
            {targetText(target)}
            <button
              type="button"
              aria-label={`Remove ${targetText(target)}`}
              onClick={() => onRemove(target)}
              className="grid size-7 place-items-center rounded-md text-ink-soft hover:bg-hover hover:text-ink"
            >
              <Icon name="close" size={12} />
            </button>
          </li>
        ))}
        {targets.length === 0 && <li className="text-ink-soft text-sm">Nothing selected yet.</li>}
      </ul>
      <div className="grid items-end gap-3 sm:grid-cols-[160px_1fr]">
        <SelectField
          label="Add by"
          value={kind}
          options={[
            { value: 'collection', label: 'Collection' },
            { value: 'tag', label: 'Tag' },
            { value: 'device', label: 'Device' },
          ]}
          onChange={(value) => setKind(value as ScheduleTarget['kind'])}
        />
        {kind === 'collection' && <CollectionPicker siteId={siteId} onAdd={onAdd} />}
        {kind === 'tag' && <TagPicker onAdd={onAdd} />}
        {kind === 'device' && <DevicePicker siteId={siteId} onAdd={onAdd} />}
      </div>
    </div>
  )
}

interface PickerProps {
  siteId: string | null
  onAdd: (target: ScheduleTarget) => void
}

function CollectionPicker({ siteId, onAdd }: PickerProps) {
  const collections = usePicker('collection', siteId ? { siteId } : {})
  return (
    <ObjectPicker
      label="Collection"
      picker={collections}
      value=""
      first={[{ value: '', label: 'Select a collection' }]}
      labelOf={({ name, siteName }) => (siteId ? name : `${name} (${siteName})`)}
      onChange={(collectionId) => {
        const found = collections.itemOf(collectionId)
        if (found) onAdd({ kind: 'collection', collectionId, name: found.name, siteName: found.siteName })
      }}
    />
  )
}

function TagPicker({ onAdd }: Pick<PickerProps, 'onAdd'>) {
  const [text, setText] = useState('')
  const tag = text.trim()
  return (
    <div className="grid grid-cols-[1fr_auto] items-end gap-2">
      <TextField label="Tag" value={text} onChange={setText} placeholder="lab" />
      <Button
        disabled={!tag}
        onClick={() => {
          onAdd({ kind: 'tag', tag })
          setText('')
        }}
      >
        <Icon name="add" size={12} /> Add
      </Button>
    </div>
  )
}

const foundMax = 8

function DevicePicker({ siteId, onAdd }: PickerProps) {
  const [search, setSearch] = useState('')
  const wanted = { search: search.trim(), limit: foundMax, ...(siteId ? { siteId } : {}) }
  const found = useQuery(useTRPC().device.list.queryOptions(wanted, { enabled: wanted.search.length > 0 }))
  return (
    <div className="flex flex-col gap-2">
      <TextField label="Device" value={search} onChange={setSearch} placeholder="Name or MAC address" />
      <ul className="flex flex-wrap gap-2" aria-label="Matching devices">
        {wanted.search &&
          found.data?.items.map(({ id, name, siteName }) => (
            <li key={id}>
              <Button onClick={() => onAdd({ kind: 'device', deviceId: id, name, siteName })}>
                <Icon name="add" size={12} /> {name}
              </Button>
            </li>
          ))}
        {wanted.search && found.data?.items.length === 0 && (
          <li className="text-ink-soft text-xs">No device matches.</li>
        )}
        {wanted.search && found.data?.nextCursor && (
          <li className="self-center text-ink-soft text-xs">More devices match. Enter more of the name.</li>
        )}
      </ul>
    </div>
  )
}
