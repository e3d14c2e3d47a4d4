'use client'

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { SelectField, SubmitRow, TextField } from '../../components/field'
import { EmptyState, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import { type Listed, nextPage, type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { NewOfFarm } from '../farms/new-of-farm'
import { useMay } from '../session/use-may'
import { notIncluded, waveOf, waveOptions, wavesOf } from './wave-draft'

export function NewRolloutPage() {
  const mayCreate = useMay('rollout.change')
  return (
    <NewOfFarm noun="rollout" choice="The rollout updates edges of this farm" mayCreate={mayCreate} allowedRole="admin">
      {(farm) => <NewRollout key={farm.id} farm={farm} />}
    </NewOfFarm>
  )
}

type Site = Listed<'site'>

interface Draft {
  version: string
  byHand: boolean
  minutes: string
  /** The waves of sites for which one was chosen. */
  chosen: Record<string, number>
}

function NewRollout({ farm }: { farm: { id: string; name: string } }) {
  const trpc = useTRPC()
  const releases = useQuery(trpc.edge.releases.queryOptions())
  const sites = useInfiniteQuery(trpc.site.list.infiniteQueryOptions({ farmId: farm.id, limit: 100 }, nextPage))
  const [draft, setDraft] = useState<Draft>({ version: '', byHand: false, minutes: '60', chosen: {} })
  const create = useCreate()
  const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes })
  const listed = sites.data?.pages.flatMap(({ items }) => items) ?? []
  const offered = releases.data?.releases ?? []
  const version = draft.version || (offered[0]?.version ?? '')
  const waves = wavesOf(listed, draft.chosen)
  const isWhole = waves[0]?.length === 1 && waves.every((wave) => wave.length > 0)
  if (releases.data && offered.length === 0) return <NoReleases />
  return (
    <form
      className="flex flex-col gap-5"
      onSubmit={(event) => {
        event.preventDefault()
        const { byHand, minutes } = draft
        create.mutate({ farmId: farm.id, version, waves, byHand, healthyMinutes: Number(minutes) })
      }}
    >
      <ReleasePanel draft={{ ...draft, version }} releases={offered} set={set} />
      <Panel title="Waves" aside="within a site, one edge is updated after the other" flush>
        <PagedList
          label="Sites"
          query={sites}
          columns={columnsFor(
            waves.length,
            (id) => waveOf(listed, draft.chosen, id),
            (id, wave) => set({ chosen: { ...draft.chosen, [id]: wave } }),
          )}
          rowKey={({ id }) => id}
          empty={<EmptyState title="No sites." text={`${farm.name} has no sites yet.`} />}
        />
      </Panel>
      <SubmitRow
        action="Start rollout"
        busy={create.isPending || create.isSuccess}
        disabled={!isWhole || !isMinutes(draft.minutes) || version === ''}
        problem={create.error ? readableError(create.error) : isWhole || !sites.data ? null : howToChoose}
      />
    </form>
  )
}

function useCreate() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  return useMutation(
    trpc.rollout.create.mutationOptions({
      onSuccess: (rollout) => {
        queryClient.setQueryData(trpc.rollout.get.queryKey({ rolloutId: rollout.id }), rollout)
        void queryClient.invalidateQueries(trpc.rollout.list.pathFilter())
        router.push(`/edges/rollouts/${rollout.id}`)
      },
    }),
  )
}

interface ReleasePanelProps {
  draft: Draft
  releases: RouterOutputs['edge']['releases']['releases']
  set: (changes: Partial<Draft>) => void
}

function ReleasePanel({ draft, releases, set }: ReleasePanelProps) {
  return (
    <Panel title="Release">
      <div className="grid gap-4 sm:grid-cols-3">
        <SelectField
          label="Version"
          value={draft.version}
          options={releases.map(({ version, archs }) => ({
            value: version,
            label: `${version} (${archs.join(', ')})`,
          }))}
          onChange={(version) => set({ version })}
        />
        <SelectField
          label="The next wave starts"
          value={draft.byHand ? 'by_hand' : 'healthy'}
          options={[
            { value: 'healthy', label: 'when all edges of a wave are healthy' },
            { value: 'by_hand', label: 'when someone starts it' },
          ]}
          onChange={(value) => set({ byHand: value === 'by_hand' })}
        />
        <TextField
          label="Healthy for, in minutes"
          value={draft.minutes}
          onChange={(minutes) => set({ minutes })}
          maxLength={5}
          hint="A wave is over when all of its edges have been healthy for this long."
        />
      </div>
    </Panel>
  )
}

function isMinutes(text: string): boolean {
  return /^\d{1,5}$/.test(text.trim()) && Number(text) <= minutesMax
}

function NoReleases() {
  return (
    <EmptyState
      title="There is no release to roll out."
      text="This control plane has no repository of releases, or an empty one. Add releases with scripts/release/repository.mjs."
    />
  )
}

const minutesMax = 10_080
const howToChoose = 'Select exactly one site as the canary, and leave no wave without a site.'

function columnsFor(
  waveCount: number,
  waveOfSite: (siteId: string) => number,
  onChange: (siteId: string, wave: number) => void,
): Column<Site>[] {
  return [
    {
      title: 'Site',
      wide: true,
      cell: ({ name }) => <span className="wrap-anywhere whitespace-normal font-medium text-ink">{name}</span>,
    },
    { title: 'Edges', align: 'right', cell: ({ edgeCount }) => formatCount(edgeCount) },
    {
      title: 'Wave',
      cell: ({ id, name }) => (
        <select
          aria-label={`Wave of ${name}`}
          value={waveOfSite(id)}
          onChange={(event) => onChange(id, Number(event.target.value))}
          className="h-8 rounded-md border border-line-strong bg-surface px-2 text-ink text-sm hover:bg-hover"
        >
          {waveOptions(waveCount).map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
          <option value={notIncluded}>Not included</option>
        </select>
      ),
    },
  ]
}
