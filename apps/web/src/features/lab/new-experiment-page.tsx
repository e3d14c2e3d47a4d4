'use client'

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { SelectField, SubmitRow, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { countOf, formatCount, formatDuration } from '../../lib/format-quantity'
import { type Listed, nextPage, readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'
import { PageName } from '../shell/object-page'
import {
  bootCountOf,
  cellCountOf,
  estimateUs,
  type Factor,
  factorsOf,
  isOneAtATime,
  type Matrix,
  medianUs,
} from './lab-draft'
import { MatrixPanel } from './matrix-panel'

export function NewExperimentPage() {
  const mayStart = useMay('experiment.change')
  const sites = usePicker('site', {})
  const [chosen, setChosen] = useState('')
  const siteId = chosen || (sites.items[0]?.id ?? '')
  return (
    <Page>
      <PageName name="New experiment" />
      <PageHeader
        title="New experiment"
        summary="Each device boots with each combination of settings. The order is random, so that nothing else differs between them."
      />
      {!mayStart ? (
        <EmptyState title="You cannot start experiments." text="Ask someone with the role operator." />
      ) : sites.isLoaded && sites.items.length === 0 && sites.search === '' ? (
        <EmptyState title="No sites yet." text="Create a site with devices first." />
      ) : (
        <>
          <Panel title="Site">
            <ObjectPicker label="Site" picker={sites} value={siteId} onChange={setChosen} />
          </Panel>
          {siteId && <NewExperiment key={siteId} siteId={siteId} />}
        </>
      )}
    </Page>
  )
}

interface Draft {
  name: string
  deviceIds: string[]
  matrix: Matrix
  repetitions: string
  atOnce: string
  hours: string
}

const empty: Draft = { name: '', deviceIds: [], matrix: {}, repetitions: '10', atOnce: '3', hours: '12' }
const devicesMax = 64

function NewExperiment({ siteId }: { siteId: string }) {
  const [draft, setDraft] = useState(empty)
  const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes })
  const factors = factorsOf(draft.matrix)
  const size = sizeOf(draft, factors)
  const create = useCreate()
  const problem = create.error ? readableError(create.error) : null
  return (
    <form
      className="flex flex-col gap-5"
      onSubmit={(event) => {
        event.preventDefault()
        const { name, deviceIds, hours } = draft
        const { repetitions, atOnce } = size
        create.mutate({ siteId, name, deviceIds, factors, repetitions, atOnce, hours: Number(hours) })
      }}
    >
      <Devices siteId={siteId} chosen={draft.deviceIds} onChange={(deviceIds) => set({ deviceIds })} />
      <MatrixPanel matrix={draft.matrix} onChange={(matrix) => set({ matrix })} />
      <Plan draft={draft} set={set} isOne={isOneAtATime(factors)} />
      <Estimate siteId={siteId} size={size} />
      <SubmitRow
        action="Start experiment"
        busy={create.isPending || create.isSuccess}
        disabled={draft.name.trim() === '' || draft.deviceIds.length === 0 || size.cells < 2}
        problem={
          problem ?? (size.cells === 1 ? 'Select at least two values of a setting, or one beside “As now”.' : null)
        }
      />
    </form>
  )
}

function sizeOf({ deviceIds, repetitions, atOnce }: Draft, factors: Factor[]) {
  return {
    devices: deviceIds.length,
    cells: cellCountOf(factors),
    repetitions: wholeNumber(repetitions),
    atOnce: isOneAtATime(factors) ? 1 : wholeNumber(atOnce),
  }
}

function wholeNumber(text: string): number {
  return /^\d{1,4}$/.test(text.trim()) ? Number(text) : 0
}

function useCreate() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  return useMutation(
    trpc.experiment.create.mutationOptions({
      onSuccess: (experiment) => {
        queryClient.setQueryData(trpc.experiment.get.queryKey({ experimentId: experiment.id }), experiment)
        void queryClient.invalidateQueries(trpc.experiment.list.pathFilter())
        router.push(`/lab/${experiment.id}`)
      },
    }),
  )
}

type Device = Listed<'device'>

interface DevicesProps {
  siteId: string
  chosen: string[]
  onChange: (ids: string[]) => void
}

function Devices({ siteId, chosen, onChange }: DevicesProps) {
  const query = useInfiniteQuery(useTRPC().device.list.infiniteQueryOptions({ siteId, limit: 100 }, nextPage))
  const isFull = chosen.length >= devicesMax
  const columns: Column<Device>[] = [
    {
      title: 'Device',
      wide: true,
      cell: ({ id, name }) => (
        <label className="flex cursor-pointer items-center gap-2.5 py-2 font-medium text-ink">
          <input
            type="checkbox"
            checked={chosen.includes(id)}
            disabled={isFull && !chosen.includes(id)}
            onChange={() => onChange(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id])}
          />
          <span className="wrap-anywhere whitespace-normal">{name}</span>
        </label>
      ),
    },
    { title: 'Collection', from: 'sm', cell: ({ collectionName }) => collectionName },
  ]
  return (
    <Panel
      title="Devices"
      flush
      aside={`${countOf(chosen.length, 'device')} selected, at most ${devicesMax}; they restart for each boot`}
    >
      <div className="max-h-80 overflow-y-auto">
        <PagedList
          label="Devices of the site"
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={<EmptyState title="No devices." text="This site has no devices yet." />}
        />
      </div>
    </Panel>
  )
}

interface PlanProps {
  draft: Draft
  set: (changes: Partial<Draft>) => void
  isOne: boolean
}

function Plan({ draft, set, isOne }: PlanProps) {
  return (
    <Panel title="Plan">
      <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-4">
        <TextField label="Name" value={draft.name} onChange={(name) => set({ name })} />
        <TextField
          label="Boots of each device with each cell"
          type="number"
          value={draft.repetitions}
          onChange={(repetitions) => set({ repetitions })}
          hint="Ten show large differences; small ones need more."
        />
        <TextField
          label="Devices at once"
          type="number"
          value={isOne ? '1' : draft.atOnce}
          onChange={(atOnce) => set({ atOnce })}
          hint={isOne ? 'One at a time: others would warm the cache.' : 'How many of the devices boot together.'}
        />
        <SelectField
          label="Ends at the latest after"
          value={draft.hours}
          options={[1, 2, 4, 12, 24, 48, 168].map((hours) => ({ value: String(hours), label: countOf(hours, 'hour') }))}
          onChange={(hours) => set({ hours })}
          hint="From then on no device gets its settings."
        />
      </div>
    </Panel>
  )
}

const bootsLooked = 50

function Estimate({ siteId, size }: { siteId: string; size: ReturnType<typeof sizeOf> }) {
  const { data } = useQuery(useTRPC().boot.list.queryOptions({ siteId, outcome: 'ready', limit: bootsLooked }))
  const bootUs = medianUs(data?.items.flatMap(({ totalUs }) => totalUs ?? []) ?? [])
  const boots = bootCountOf(size)
  return (
    <p role="status" className="text-ink-soft text-sm">
      {boots === 0
        ? 'Select devices and values to see how many boots there will be.'
        : `${countOf(size.cells, 'cell')} × ${countOf(size.devices, 'device')} × ${formatCount(size.repetitions)}: ${countOf(boots, 'boot')}, about ${formatDuration(estimateUs(size, bootUs))}${bootUs === null ? ' if a boot takes a minute' : ''}.`}
    </p>
  )
}
