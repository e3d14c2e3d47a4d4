'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Notice, SelectField, TextField } from '../../components/field'
import { linesOfPairs, pairsOfLines } from '../../lib/pair-lines'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { PersonalityField } from '../objects/personality-field'

type CollectionDetail = RouterOutputs['collection']['get']
interface Site {
  id: string
  farmId: string
  name: string
}

export function NewCollectionDialog({ site, onClose }: { site: Site; onClose: () => void }) {
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
export function EditCollectionDialog({ collectionId, onClose }: { collectionId: string; onClose: () => void }) {
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
  const personality = pairsOfLines(pairs)
  const devices = useQuery(trpc.device.list.queryOptions({ collectionId: seen.id, limit: 100 }))
  const update = useMutation(trpc.collection.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  const templates = (devices.data?.items ?? []).map((one) => ({ value: one.id, label: one.name }))
  const chosen = { vdiskId: vdiskId || null, templateDeviceId: templateId || null }
  return (
    <ObjectDialog
      title={`Edit ${seen.name}`}
      action="Save"
      saving={update}
      disabled={name.trim() === '' || personality === null}
      onSave={(revision = seen.revision) =>
        personality && update.mutate({ collectionId: seen.id, revision, name, personality, ...chosen })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <VdiskField farmId={seen.farmId} value={vdiskId} onChange={setVdiskId} none="none" />
      {vdiskId !== (seen.vdiskId ?? '') && (
        <Notice tone="live">
          Devices of this collection use it from their next boot. Running devices keep their current vDisk.
        </Notice>
      )}
      <SelectField
        label="Template for new devices"
        value={templateId}
        options={[{ value: '', label: 'none' }, ...templates]}
        onChange={setTemplateId}
        hint="New devices in this collection get the tags, attributes, vDisk, boot programs and menu of this device."
      />
      <PersonalityField value={pairs} onChange={setPairs} />
    </ObjectDialog>
  )
}

interface VdiskFieldProps {
  farmId: string
  value: string
  onChange: (value: string) => void
  /** What no vDisk means. */
  none: string
}

export function VdiskField({ farmId, value, onChange, none }: VdiskFieldProps) {
  const trpc = useTRPC()
  const vdisks = useQuery(trpc.vdisk.list.queryOptions({ farmId, limit: 100 }))
  const options = (vdisks.data?.items ?? []).map(({ id, name, newestVersion }) => ({
    value: id,
    label: newestVersion ? name : `${name} (no version yet)`,
  }))
  return (
    <SelectField label="vDisk" value={value} options={[{ value: '', label: none }, ...options]} onChange={onChange} />
  )
}
