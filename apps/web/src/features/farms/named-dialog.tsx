'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'

type Farm = RouterOutputs['farm']['list']['items'][number]
type Store = RouterOutputs['store']['list']['items'][number]

/** @param farm absent for a new one */
export function FarmDialog({ farm, onClose }: { farm?: Farm; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(farm)
  const [name, setName] = useState(seen?.name ?? '')
  const onSuccess = useSaved(onClose)
  const create = useMutation(trpc.farm.create.mutationOptions({ onSuccess }))
  const update = useMutation(trpc.farm.update.mutationOptions({ onSuccess }))
  return (
    <ObjectDialog
      title={seen ? `Rename ${seen.name}` : 'New farm'}
      action={seen ? 'Save' : 'Create farm'}
      saving={seen ? update : create}
      disabled={name.trim() === ''}
      onSave={(revision = seen?.revision ?? 1) =>
        seen ? update.mutate({ farmId: seen.id, revision, name }) : create.mutate({ name })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} hint="A farm groups sites, vDisks and boot menus." />
    </ObjectDialog>
  )
}

/** @param store absent for a new one */
export function StoreDialog({ store, onClose }: { store?: Store; onClose: () => void }) {
  const trpc = useTRPC()
  const farms = usePicker('farm', {})
  const [seen] = useState(store)
  const [name, setName] = useState(seen?.name ?? '')
  const [note, setNote] = useState(seen?.note ?? '')
  const [chosenId, setChosenId] = useState(seen?.farmId ?? '')
  const onSuccess = useSaved(onClose)
  const create = useMutation(trpc.store.create.mutationOptions({ onSuccess }))
  const update = useMutation(trpc.store.update.mutationOptions({ onSuccess }))
  const farm = farms.itemOf(chosenId) ?? farms.items[0]
  return (
    <ObjectDialog
      title={seen ? `Edit ${seen.name}` : 'New store'}
      action={seen ? 'Save' : 'Create store'}
      saving={seen ? update : create}
      disabled={name.trim() === '' || !farm}
      onSave={(revision = seen?.revision ?? 1) => {
        if (seen) update.mutate({ storeId: seen.id, revision, name, note })
        else if (farm) create.mutate({ farmId: farm.id, name, note })
      }}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      {!seen && (
        <ObjectPicker
          label="Farm"
          picker={farms}
          value={farm?.id ?? ''}
          labelOf={(one) => one.name}
          onChange={setChosenId}
        />
      )}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
    </ObjectDialog>
  )
}
