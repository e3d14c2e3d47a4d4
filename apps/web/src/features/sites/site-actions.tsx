'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Notice, SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { linesOfPairs, pairsOfLines } from '../../lib/pair-lines'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { DeleteButton, ObjectDialog, PersonalityField, staleRevision, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'

export function NewSite() {
  const [open, setOpen] = useState(false)
  if (!useMay('site.change')) return null
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        New site
      </Button>
      {open && <NewSiteDialog onClose={() => setOpen(false)} />}
    </>
  )
}

export function SiteActions({ site }: { site: RouterOutputs['site']['get'] }) {
  const [open, setOpen] = useState<'edit' | 'move' | null>(null)
  if (!useMay('site.change', { farmId: site.farmId, siteId: site.id })) return null
  return (
    <>
      <Button onClick={() => setOpen('edit')}>Edit</Button>
      <Button onClick={() => setOpen('move')}>Move</Button>
      <DeleteButton target={{ kind: 'site', id: site.id }} name={site.name} leaveTo="/sites">
        <p>This also deletes its collections and devices. Revoke its edges first.</p>
      </DeleteButton>
      {open === 'edit' && <EditSiteDialog site={site} onClose={() => setOpen(null)} />}
      {open === 'move' && <MoveSiteDialog site={site} onClose={() => setOpen(null)} />}
    </>
  )
}

type SiteDetail = RouterOutputs['site']['get']

const unknownOptions = [
  { value: 'ignore', label: 'Hold for approval' },
  { value: 'boot', label: 'Boot default vDisk' },
]

function NewSiteDialog({ onClose }: { onClose: () => void }) {
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
        onChange={setChosenId}
        hint={farms.isLoaded && !farm && 'There is no farm yet. Create one first.'}
      />
    </ObjectDialog>
  )
}

function EditSiteDialog({ site, onClose }: { site: SiteDetail; onClose: () => void }) {
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

/** To another farm; vDisks and boot menus stay. */
function MoveSiteDialog({ site, onClose }: { site: RouterOutputs['site']['get']; onClose: () => void }) {
  const trpc = useTRPC()
  const farms = usePicker('farm', {})
  const others = { ...farms, items: farms.items.filter(({ id }) => id !== site.farmId) }
  const [farmId, setFarmId] = useState('')
  const move = useMutation(trpc.site.move.mutationOptions({ onSuccess: useSaved(onClose) }))
  const farm = others.itemOf(farmId) ?? others.items[0]
  const losesSome = move.error !== null && staleRevision(move.error) === null
  return (
    <ObjectDialog
      title={`Move ${site.name}`}
      action={losesSome ? 'Move and unassign' : 'Move site'}
      saving={move}
      disabled={!farm}
      onSave={(revision = site.revision) =>
        farm && move.mutate({ siteId: site.id, farmId: farm.id, revision, dropForeign: losesSome })
      }
      onClose={onClose}
    >
      <Notice tone="live">
        Edges, collections, devices and boots move with the site. vDisks and boot menus stay in the farm {site.farmName}
        .
      </Notice>
      <ObjectPicker
        label="New farm"
        picker={others}
        value={farm?.id ?? ''}
        onChange={setFarmId}
        hint={farms.isLoaded && !farm && 'There is no other farm.'}
      />
    </ObjectDialog>
  )
}
