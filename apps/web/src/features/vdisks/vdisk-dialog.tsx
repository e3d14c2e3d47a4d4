'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'

type VdiskDetail = RouterOutputs['vdisk']['get']
const noteMax = 500

export function NewVdiskDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const farms = usePicker('farm', {})
  const [chosenId, setChosenId] = useState('')
  const [name, setName] = useState('')
  const [note, setNote] = useState('')
  const [storeId, setStoreId] = useState('')
  const create = useMutation(trpc.vdisk.create.mutationOptions({ onSuccess: useSaved(onClose) }))
  const farm = farms.itemOf(chosenId) ?? farms.items[0]
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
      <ObjectPicker
        label="Farm"
        picker={farms}
        value={farm?.id ?? ''}
        labelOf={(one) => one.name}
        onChange={(farmId) => {
          setChosenId(farmId)
          setStoreId('')
        }}
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
      <StoreField farmId={seen.farmId} chosen={seen.store} value={storeId} onChange={setStoreId} />
      <TextField label="Note" value={note} onChange={setNote} maxLength={noteMax} />
    </ObjectDialog>
  )
}

interface StoreFieldProps {
  farmId: string
  /** The vDisk's store until now. */
  chosen?: VdiskDetail['store']
  value: string
  onChange: (value: string) => void
}

function StoreField({ farmId, chosen, value, onChange }: StoreFieldProps) {
  const stores = usePicker('store', { farmId })
  return (
    <ObjectPicker
      label="Store"
      picker={stores}
      value={value}
      first={[{ value: '', label: 'none' }]}
      chosen={chosen && { value: chosen.id, label: chosen.name }}
      labelOf={({ name }) => name}
      onChange={onChange}
    />
  )
}
