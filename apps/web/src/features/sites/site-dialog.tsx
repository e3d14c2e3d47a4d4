'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { linesOfPairs, pairsOfLines } from '../../lib/pair-lines'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { PersonalityField } from '../objects/personality-field'

type SiteDetail = RouterOutputs['site']['get']

const unknownOptions = [
  { value: 'ignore', label: 'Hold for approval' },
  { value: 'boot', label: 'Boot default vDisk' },
]

export function NewSiteDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const farms = usePicker('farm', {})
  const [chosenId, setChosenId] = useState('')
  const [name, setName] = useState('')
  const [timeZone, setTimeZone] = useState(viewerZone)
  const create = useMutation(trpc.site.create.mutationOptions({ onSuccess: useSaved(onClose) }))
  const farm = farms.itemOf(chosenId) ?? farms.items[0]
  return (
    <ObjectDialog
      title="New site"
      action="Create site"
      saving={create}
      disabled={!farm || name.trim() === ''}
      onSave={() => farm && create.mutate({ farmId: farm.id, name, timeZone })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <TextField
        label="Time zone"
        value={timeZone}
        onChange={setTimeZone}
        hint="For example Europe/Berlin. Schedules of the site follow its daylight saving time."
      />
      <ObjectPicker
        label="Farm"
        picker={farms}
        value={farm?.id ?? ''}
        labelOf={(one) => one.name}
        onChange={setChosenId}
        hint={farms.isLoaded && !farm && 'There is no farm yet. Create one first.'}
      />
    </ObjectDialog>
  )
}

export function EditSiteDialog({ site, onClose }: { site: SiteDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(site)
  const [name, setName] = useState(seen.name)
  const [timeZone, setTimeZone] = useState(seen.timeZone)
  const [unknownDevices, setUnknownDevices] = useState(seen.unknownDevices)
  const [pairs, setPairs] = useState(linesOfPairs(seen.personality))
  const personality = pairsOfLines(pairs)
  const update = useMutation(trpc.site.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Edit ${seen.name}`}
      action="Save"
      saving={update}
      disabled={name.trim() === '' || personality === null}
      onSave={(revision = seen.revision) =>
        personality && update.mutate({ siteId: seen.id, revision, name, timeZone, unknownDevices, personality })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <TextField label="Time zone" value={timeZone} onChange={setTimeZone} />
      <SelectField
        label="Unknown devices"
        value={unknownDevices}
        options={unknownOptions}
        onChange={(value) => setUnknownDevices(value === 'boot' ? 'boot' : 'ignore')}
      />
      <PersonalityField value={pairs} onChange={setPairs} />
    </ObjectDialog>
  )
}

function viewerZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}
