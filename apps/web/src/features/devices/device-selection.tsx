'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import type { Column } from '../../components/table'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { type RouterInputs, type RouterOutputs, useTRPC, useTRPCClient } from '../../lib/trpc'
import { ChangeManyDialog } from './change-many-dialog'

type DeviceSummary = RouterOutputs['device']['list']['items'][number]
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
  const client = useTRPCClient()
  const trpc = useTRPC()
  const showToast = useToast()
  const [changing, setChanging] = useState(false)
  const [deleting, setDeleting] = useState(false)
  const ids = [...selected]
  const siteIds = [...new Set(shown.flatMap(({ id, siteId }) => (selected.has(id) ? siteId : [])))]
  const all = useMutation({
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
      <Button className="h-7!" busy={all.isPending} onClick={() => all.mutate()}>
        Select all results
      </Button>
      {ids.length > 0 && (
        <>
          <Button className="h-7!" onClick={() => setChanging(true)}>
            Edit or move
          </Button>
          <select
            aria-label="Power action for selected devices"
            value=""
            onChange={(event) => power.mutate({ deviceIds: ids, order: event.target.value as Order })}
            className="h-7 rounded-md border border-line-strong bg-surface px-1.5 text-ink text-sm hover:bg-hover"
          >
            <option value="" disabled>
              Power
            </option>
            <option value="power_on">Switch on</option>
            <option value="power_off">Power off</option>
            <option value="restart">Restart</option>
          </select>
          <Button className="h-7!" busy={remove.isPending} onClick={() => setDeleting(true)}>
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
  return (done: string) => ({
    onSuccess: ({ count }: { count: number }) => {
      void queryClient.invalidateQueries()
      showToast({ title: `${countOf(count, 'device')} ${done}.`, tone: 'ready' as const })
      onDone()
    },
    onError: (error: unknown) =>
      showToast({ title: 'Could not update the devices.', text: readableError(error), tone: 'failed' as const }),
  })
}
