'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'

type VdiskDetail = RouterOutputs['vdisk']['get']
const noteMax = 500

export function NewVdiskDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const farms = useQuery(trpc.farm.list.queryOptions({ limit: 100 }))
  const [chosenId, setChosenId] = useState('')
  const [name, setName] = useState('')
  const [note, setNote] = useState('')
  const [storeId, setStoreId] = useState('')
  const create = useMutation(trpc.vdisk.create.mutationOptions({ onSuccess: useSaved(onClose) }))
  const options = farms.data?.items ?? []
  const farm = options.find(({ id }) => id === chosenId) ?? options[0]
  return (
    <ObjectDialog
      title="New vDisk"
      action="Create vDisk"
      saving={create}
      disabled={!farm || name.trim() === ''}
      onSave={() => farm && create.mutate({ farmId: farm.id, name, note, storeId: storeId || null })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <SelectField
        label="Farm"
        value={farm?.id ?? ''}
        options={options.map((one) => ({ value: one.id, label: one.name }))}
        onChange={setChosenId}
      />
      {farm && <StoreField farmId={farm.id} value={storeId} onChange={setStoreId} />}
      <TextField label="Note" value={note} onChange={setNote} maxLength={noteMax} />
    </ObjectDialog>
  )
}

export function EditVdiskDialog({ vdisk, onClose }: { vdisk: VdiskDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk)
  const [name, setName] = useState(seen.name)
  const [note, setNote] = useState(seen.note)
  const [storeId, setStoreId] = useState(seen.store?.id ?? '')
  const update = useMutation(trpc.vdisk.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Edit ${seen.name}`}
      action="Save"
      saving={update}
      disabled={name.trim() === ''}
      onSave={(revision = seen.revision) =>
        update.mutate({ vdiskId: seen.id, revision, name, note, storeId: storeId || null })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <StoreField farmId={seen.farmId} value={storeId} onChange={setStoreId} />
      <TextField label="Note" value={note} onChange={setNote} maxLength={noteMax} />
    </ObjectDialog>
  )
}

interface StoreFieldProps {
  farmId: string
  value: string
  onChange: (value: string) => void
}

function StoreField({ farmId, value, onChange }: StoreFieldProps) {
  const trpc = useTRPC()
  const stores = useQuery(trpc.store.list.queryOptions({ farmId, limit: 100 }))
  return (
    <SelectField
      label="Store"
      value={value}
      options={[
        { value: '', label: 'none' },
        ...(stores.data?.items ?? []).map(({ id, name }) => ({ value: id, label: name })),
      ]}
      onChange={onChange}
    />
  )
}
