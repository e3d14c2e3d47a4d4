'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog, FormDialog } from '../../components/dialog'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import type { Column } from '../../components/table'
import { useFailureToast, useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { tagsOfText } from '../../lib/pair-lines'
import { formProblem, type Listed, type RouterInputs, useTRPC, useTRPCClient } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { PlanTable } from './csv-buttons'
import { enabledOptions, ManyFields, manyInput, noChoices } from './many-fields'

type DeviceSummary = Listed<'device'>
type Filter = RouterInputs['device']['listIds']
type Order = RouterInputs['device']['powerMany']['order']

/** The columns with a box to tick in front of each name. */
export function selectable(
  columns: Column<DeviceSummary>[],
  { selected, onSelect }: { selected: ReadonlySet<string>; onSelect: (id: string) => void },
): Column<DeviceSummary>[] {
  const [first, ...rest] = columns
  if (!first) return columns
  const cell = (device: DeviceSummary) => (
    <span className="inline-flex items-center gap-3">
      <input
        type="checkbox"
        aria-label={`Select ${device.name}`}
        checked={selected.has(device.id)}
        onChange={() => onSelect(device.id)}
        className="size-4 shrink-0 accent-(--ink)"
      />
      {first.cell(device)}
    </span>
  )
  return [{ ...first, cell }, ...rest]
}

interface DeviceSelectionProps {
  shown: DeviceSummary[]
  selected: ReadonlySet<string>
  filter: Filter
  onSelect: (ids: string[]) => void
}

/** Above the list: what can be done with all that are ticked. */
export function DeviceSelection({ shown, selected, filter, onSelect }: DeviceSelectionProps) {
  const trpc = useTRPC()
  const [changing, setChanging] = useState(false)
  const [deleting, setDeleting] = useState(false)
  const ids = [...selected]
  const siteIds = [...new Set(shown.flatMap(({ id, siteId }) => (selected.has(id) ? siteId : [])))]
  const all = useSelectAll(filter, onSelect)
  const options = useManyOptions(() => onSelect([]))
  const remove = useMutation(trpc.device.removeMany.mutationOptions(options('moved to trash')))
  const power = useMutation(trpc.device.powerMany.mutationOptions(options('power order sent')))
  const isAllShown = shown.length > 0 && shown.every(({ id }) => selected.has(id))
  return (
    <div className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-2 border-line border-b px-4 py-1.5">
      <label className="flex items-center gap-3 text-ink-soft text-sm">
        <input
          type="checkbox"
          checked={isAllShown}
          onChange={() => onSelect(isAllShown ? [] : shown.map(({ id }) => id))}
          className="size-4 shrink-0 accent-(--ink)"
        />
        {ids.length === 0 ? 'Select all shown' : `${countOf(ids.length, 'device')} selected`}
      </label>
      <Button small busy={all.isPending} onClick={() => all.mutate()}>
        Select all results
      </Button>
      {ids.length > 0 && (
        <>
          <Button small onClick={() => setChanging(true)}>
            Edit or move
          </Button>
          <PowerSelect onOrder={(order) => power.mutate({ deviceIds: ids, order })} />
          <Button small busy={remove.isPending} onClick={() => setDeleting(true)}>
            Delete selected
          </Button>
        </>
      )}
      <ConfirmDialog
        open={deleting}
        onOpenChange={setDeleting}
        title={`Delete ${countOf(ids.length, 'device')}?`}
        action={`Delete ${countOf(ids.length, 'device')}`}
        onConfirm={() => remove.mutate({ deviceIds: ids })}
      >
        <p>Edges stop serving these devices. You can restore them from the trash for 30 days.</p>
      </ConfirmDialog>
      {changing && (
        <ChangeManyDialog
          deviceIds={ids}
          siteIds={siteIds}
          onClose={() => setChanging(false)}
          onDone={() => onSelect([])}
        />
      )}
    </div>
  )
}

function useManyOptions(onDone: () => void) {
  const queryClient = useQueryClient()
  const showToast = useToast()
  const onError = useFailureToast('Could not update the devices.')
  return (done: string) => ({
    onSuccess: ({ count }: { count: number }) => {
      void queryClient.invalidateQueries()
      showToast({ title: `${countOf(count, 'device')} ${done}.`, tone: 'ready' as const })
      onDone()
    },
    onError,
  })
}

interface ChangeManyDialogProps {
  deviceIds: string[]
  /** Sites of the devices that are shown. */
  siteIds: string[]
  onClose: () => void
  onDone: () => void
}

/** First what becomes of each, then all of it, or nothing. */
function ChangeManyDialog({ deviceIds, siteIds, onClose, onDone }: ChangeManyDialogProps) {
  const collections = usePicker('collection', {})
  const [collectionId, setCollectionId] = useState('')
  const [enabled, setEnabled] = useState('')
  const [addTags, setAddTags] = useState('')
  const [removeTags, setRemoveTags] = useState('')
  const [choices, setChoices] = useState(noChoices)
  const change = useChangeMany(() => {
    onDone()
    onClose()
  })
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
        options={[{ value: '', label: 'No change' }, ...enabledOptions]}
        onChange={edit(setEnabled)}
      />
      <ManyFields siteIds={siteIds} choices={choices} onChoose={edit(setChoices)} />
      {plan && <PlanTable plan={plan} />}
    </FormDialog>
  )
}

function useChangeMany(onDone: () => void) {
  const queryClient = useQueryClient()
  const showToast = useToast()
  return useMutation(
    useTRPC().device.changeMany.mutationOptions({
      onSuccess: (plan) => {
        if (!plan.applied) return
        void queryClient.invalidateQueries()
        showToast({ title: `${countOf(plan.changedCount, 'device')} updated.`, tone: 'ready' })
        onDone()
      },
    }),
  )
}

function PowerSelect({ onOrder }: { onOrder: (order: Order) => void }) {
  return (
    <select
      aria-label="Power action for selected devices"
      value=""
      onChange={(event) => onOrder(event.target.value as Order)}
      className="h-7 rounded-md border border-line-strong bg-surface px-1.5 text-ink text-sm hover:bg-hover"
    >
      <option value="" disabled>
        Power
      </option>
      <option value="power_on">Switch on</option>
      <option value="power_off">Power off</option>
      <option value="restart">Restart</option>
    </select>
  )
}

function useSelectAll(filter: Filter, onSelect: (ids: string[]) => void) {
  const client = useTRPCClient()
  const showToast = useToast()
  return useMutation({
    mutationFn: () => client.device.listIds.query(filter),
    onSuccess: (found) => {
      onSelect(found.ids)
      if (found.isCut)
        showToast({
          title: 'Only the first 1,000 devices are selected.',
          text: 'The list has more. Set a filter to narrow it.',
        })
    },
  })
}
