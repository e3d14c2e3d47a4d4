'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Notice, SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { countOf } from '../../lib/format-quantity'
import { linesOfPairs, pairsOfLines } from '../../lib/pair-lines'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { learnCost, learnOptions, withoutCost, withoutOptions } from '../devices/key-text'
import { DeleteButton, ObjectDialog, PersonalityField, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'

type Site = RouterOutputs['site']['get']
type Collection = Site['collections'][number]

export function NewCollection({ site }: { site: Site }) {
  const [open, setOpen] = useState(false)
  if (!useMay('collection.change', { farmId: site.farmId, siteId: site.id })) return null
  return (
    <>
      <Button small onClick={() => setOpen(true)}>
        New collection
      </Button>
      {open && <NewCollectionDialog site={site} onClose={() => setOpen(false)} />}
    </>
  )
}

/** For a row, or for its own page. @param leaveTo where to go once it is deleted: from its own page */
export function CollectionActions({ collection, leaveTo }: { collection: Collection; leaveTo?: string }) {
  const [open, setOpen] = useState(false)
  if (!useMay('collection.change', { siteId: collection.siteId, collectionId: collection.id })) return null
  return (
    <span className="inline-flex gap-2">
      <Button small aria-label={`Edit ${collection.name}`} onClick={() => setOpen(true)}>
        Edit
      </Button>
      <DeleteButton
        target={{ kind: 'collection', id: collection.id }}
        name={collection.name}
        label={`Delete ${collection.name}`}
        compact
        {...(leaveTo && { leaveTo })}
      >
        <p>This also deletes its {countOf(collection.deviceCount, 'device')}. Edges stop serving them.</p>
      </DeleteButton>
      {open && <EditCollectionDialog collectionId={collection.id} onClose={() => setOpen(false)} />}
    </span>
  )
}

type CollectionDetail = RouterOutputs['collection']['get']

function NewCollectionDialog({ site, onClose }: { site: Site; onClose: () => void }) {
  const trpc = useTRPC()
  const [name, setName] = useState('')
  const [vdiskId, setVdiskId] = useState('')
  const create = useMutation(trpc.collection.create.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`New collection in ${site.name}`}
      action="Create collection"
      saving={create}
      disabled={name.trim() === ''}
      onSave={() => create.mutate({ siteId: site.id, name, vdiskId: vdiskId || null })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <VdiskField farmId={site.farmId} value={vdiskId} onChange={setVdiskId} none="none" />
    </ObjectDialog>
  )
}

/** Reads the collection, then shows its form. */
function EditCollectionDialog({ collectionId, onClose }: { collectionId: string; onClose: () => void }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.collection.get.queryOptions({ collectionId }, { staleTime: 0 }))
  return query.data && !query.isFetching ? (
    <EditCollection key={query.data.revision} collection={query.data} onClose={onClose} />
  ) : null
}

function EditCollection({ collection, onClose }: { collection: CollectionDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(collection)
  const [name, setName] = useState(seen.name)
  const [vdiskId, setVdiskId] = useState(seen.vdiskId ?? '')
  const [templateId, setTemplateId] = useState(seen.templateDevice?.id ?? '')
  const [pairs, setPairs] = useState(linesOfPairs(seen.personality))
  const [policy, setPolicy] = useState<KeyPolicy>({ keyLearn: seen.keyLearn, keyWithout: seen.keyWithout })
  const personality = pairsOfLines(pairs)
  const devices = usePicker('device', { collectionId: seen.id })
  const update = useMutation(trpc.collection.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  const chosen = { vdiskId: vdiskId || null, templateDeviceId: templateId || null }
  return (
    <ObjectDialog
      title={`Edit ${seen.name}`}
      action="Save"
      saving={update}
      disabled={name.trim() === '' || personality === null}
      onSave={(revision = seen.revision) =>
        personality && update.mutate({ collectionId: seen.id, revision, name, personality, ...policy, ...chosen })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <VdiskField
        farmId={seen.farmId}
        chosen={seen.vdiskId === null ? null : { id: seen.vdiskId, name: seen.vdiskName ?? '' }}
        value={vdiskId}
        onChange={setVdiskId}
        none="none"
      />
      {vdiskId !== (seen.vdiskId ?? '') && (
        <Notice tone="live">
          Devices of this collection use it from their next boot. Running devices keep their current vDisk.
        </Notice>
      )}
      <ObjectPicker
        label="Template for new devices"
        picker={devices}
        value={templateId}
        first={[{ value: '', label: 'none' }]}
        chosen={seen.templateDevice && { value: seen.templateDevice.id, label: seen.templateDevice.name }}
        onChange={setTemplateId}
        hint="New devices in this collection get the tags, attributes, vDisk, boot programs and menu of this device."
      />
      <KeyPolicyFields policy={policy} onChange={setPolicy} />
      <PersonalityField value={pairs} onChange={setPairs} />
    </ObjectDialog>
  )
}

type KeyPolicy = Pick<CollectionDetail, 'keyLearn' | 'keyWithout'>

interface KeyPolicyFieldsProps {
  policy: KeyPolicy
  onChange: (policy: KeyPolicy) => void
}

/** How the devices' TPM keys become known, and what devices without one get, with what each choice costs. */
function KeyPolicyFields({ policy, onChange }: KeyPolicyFieldsProps) {
  const { keyLearn, keyWithout } = policy
  const chosen = <T,>(options: { value: T }[], value: string) => options.find((option) => option.value === value)?.value
  return (
    <>
      <SelectField
        label="Keys of devices"
        value={keyLearn}
        options={learnOptions}
        hint={learnCost[keyLearn]}
        onChange={(value) => onChange({ ...policy, keyLearn: chosen(learnOptions, value) ?? keyLearn })}
      />
      <SelectField
        label="Devices without a known key get"
        value={keyWithout}
        options={withoutOptions}
        hint={withoutCost[keyWithout]}
        onChange={(value) => onChange({ ...policy, keyWithout: chosen(withoutOptions, value) ?? keyWithout })}
      />
    </>
  )
}

interface VdiskFieldProps {
  farmId: string
  /** The vDisk until now. */
  chosen?: { id: string; name: string } | null
  value: string
  onChange: (value: string) => void
  /** The meaning of no vDisk. */
  none: string
}

export function VdiskField({ farmId, chosen, value, onChange, none }: VdiskFieldProps) {
  const vdisks = usePicker('vdisk', { farmId })
  return (
    <ObjectPicker
      label="vDisk"
      picker={vdisks}
      value={value}
      first={[{ value: '', label: none }]}
      chosen={chosen && { value: chosen.id, label: chosen.name }}
      labelOf={({ name, newestVersion }) => (newestVersion ? name : `${name} (no version yet)`)}
      onChange={onChange}
    />
  )
}
