'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { tagsOfText } from '../../lib/pair-lines'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ManyFields, manyInput, noChoices } from './many-fields'
import { PlanTable } from './plan-table'

interface ChangeManyDialogProps {
  deviceIds: string[]
  /** Of those that are shown. */
  siteIds: string[]
  onClose: () => void
  onDone: () => void
}

/** First what becomes of each, then all of it, or nothing. */
export function ChangeManyDialog({ deviceIds, siteIds, onClose, onDone }: ChangeManyDialogProps) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const collections = usePicker('collection', {})
  const [collectionId, setCollectionId] = useState('')
  const [enabled, setEnabled] = useState('')
  const [addTags, setAddTags] = useState('')
  const [removeTags, setRemoveTags] = useState('')
  const [choices, setChoices] = useState(noChoices)
  const change = useMutation(
    trpc.device.changeMany.mutationOptions({
      onSuccess: (plan) => {
        if (!plan.applied) return
        void queryClient.invalidateQueries()
        showToast({ title: `${countOf(plan.changedCount, 'device')} updated.`, tone: 'ready' })
        onDone()
        onClose()
      },
    }),
  )
  const plan = change.data
  const input = {
    deviceIds,
    ...(collectionId && { collectionId }),
    ...(enabled && { enabled: enabled === 'yes' }),
    addTags: tagsOfText(addTags),
    removeTags: tagsOfText(removeTags),
    ...manyInput(choices),
  }
  const isReady = plan !== undefined && plan.refusedCount === 0
  const edit =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      set(value)
      change.reset()
    }
  return (
    <FormDialog
      title={`Edit ${countOf(deviceIds.length, 'device')}`}
      action={isReady ? 'Apply changes' : 'Preview changes'}
      wide
      busy={change.isPending}
      disabled={plan !== undefined && !isReady}
      failure={formProblem(change.error)}
      onClose={onClose}
      onSubmit={() => change.mutate({ ...input, preview: !isReady })}
    >
      <ObjectPicker
        label="Move to collection"
        picker={collections}
        value={collectionId}
        first={[{ value: '', label: 'No change' }]}
        labelOf={({ name, siteName }) => `${name}, ${siteName}`}
        onChange={edit(setCollectionId)}
      />
      <TextField label="Add tags" value={addTags} onChange={edit(setAddTags)} hint="Comma-separated." />
      <TextField label="Remove tags" value={removeTags} onChange={edit(setRemoveTags)} />
      <SelectField
        label="Enabled"
        value={enabled}
        options={[
          { value: '', label: 'No change' },
          { value: 'yes', label: 'yes' },
          { value: 'no', label: 'No (not served)' },
        ]}
        onChange={edit(setEnabled)}
      />
      <ManyFields siteIds={siteIds} choices={choices} onChoose={edit(setChoices)} />
      {plan && <PlanTable plan={plan} />}
    </FormDialog>
  )
}
