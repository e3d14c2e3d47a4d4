'use client'

import { keepPreviousData, useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { z } from 'zod'
import { Button, LinkButton } from '../../components/button'
import { FilterBar, SearchFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { useFailureToast, useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { nextPage, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { useMay } from '../session/use-may'
import { AdoptDialog } from './adopt-dialog'
import { type Discovered, discoveredColumns } from './discovered-columns'

const filterShape = {
  search: z.string().max(64).optional(),
  site: z.uuid().optional(),
  state: z.enum(['ignored']).optional(),
}

export function DiscoveredPage() {
  const mayAdopt = useMay('discovery.decide')
  const urlFilters = useUrlFilters(filterShape)
  const { filters, filtered } = urlFilters
  const [selected, setSelected] = useState<ReadonlyMap<string, Discovered>>(new Map())
  const [adopting, setAdopting] = useState<Discovered[]>([])
  const query = useDiscovered(filters)
  const shown = query.data?.pages.flatMap((page) => page.items) ?? []
  // A device that left the list is no longer selected.
  const chosen = shown.filter(({ id }) => selected.has(id))
  const columns = discoveredColumns({
    selected: new Set(selected.keys()),
    onSelect: (device, isSelected) => setSelected((before) => withChoice(before, device, isSelected)),
    onAdopt: mayAdopt ? (device) => setAdopting([device]) : undefined,
  })
  return (
    <Page>
      <PageHeader
        title="Discovered"
        summary="Unregistered machines seen on your networks."
        actions={
          <>
            <HelpLink to={helpTopics.discovered}>How machines are discovered</HelpLink>
            <LinkButton href={filters.site ? `/discovered/rules?site=${filters.site}` : '/discovered/rules'}>
              Rules
            </LinkButton>
          </>
        }
      />
      <Filters {...urlFilters} />
      <div className="rounded-lg border border-line bg-surface">
        {mayAdopt && shown.length > 0 && (
          <SelectionBar
            shown={shown}
            chosen={chosen}
            ignored={filters.state === 'ignored'}
            onChoose={(devices) => setSelected(new Map(devices.map((device) => [device.id, device])))}
            onAdopt={() => setAdopting(chosen)}
          />
        )}
        <PagedList
          label="Discovered devices"
          query={query}
          columns={columns}
          rowKey={(device) => device.id}
          empty={<NoneDiscovered filtered={filtered} />}
        />
      </div>
      {adopting[0] && (
        <AdoptDialog
          key={adopting[0].id}
          devices={[adopting[0], ...adopting.slice(1)]}
          onClose={() => setAdopting([])}
        />
      )}
    </Page>
  )
}

function NoneDiscovered({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No machines match these filters." text="Clear a filter to see other machines." />
  ) : (
    <EmptyState
      title="No unregistered machines."
      text="Power on a machine at a site with an edge. It appears here within seconds of its first packet."
    />
  )
}

interface SelectionBarProps {
  shown: Discovered[]
  chosen: Discovered[]
  /** Whether the list shows ignored devices. */
  ignored: boolean
  onChoose: (devices: Discovered[]) => void
  onAdopt: () => void
}

/** The API's limit per request. */
const atOnceMax = 100

/** Above the list: what can be done with the rows that are ticked. */
function SelectionBar({ shown, chosen, ignored, onChoose, onAdopt }: SelectionBarProps) {
  const ignore = useIgnore()
  const sites = new Set(chosen.map(({ siteId }) => siteId))
  const isAll = chosen.length > 0 && chosen.length === Math.min(shown.length, atOnceMax)
  const problem =
    sites.size > 1
      ? 'Select machines of one site only.'
      : chosen.length > atOnceMax
        ? `Select at most ${atOnceMax} machines.`
        : null
  const nothing = chosen.length === 0 || problem !== null
  return (
    <div className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-2 border-line border-b px-4 py-1.5">
      <label className="flex items-center gap-3 text-ink-soft text-sm">
        <input
          type="checkbox"
          checked={isAll}
          onChange={() => onChoose(isAll ? [] : shown.slice(0, atOnceMax))}
          className="size-4 accent-(--ink)"
        />
        {chosen.length === 0 ? 'Select all shown' : `${countOf(chosen.length, 'machine')} selected`}
      </label>
      <Button small disabled={nothing} onClick={onAdopt}>
        Adopt selected
      </Button>
      <Button
        small
        disabled={nothing}
        busy={ignore.isPending}
        onClick={() =>
          ignore.mutate({
            siteId: chosen[0]?.siteId ?? '',
            discoveredIds: chosen.map(({ id }) => id),
            ignored: !ignored,
          })
        }
      >
        {ignored ? 'Stop ignoring' : 'Ignore'}
      </Button>
      {problem && <span className="text-silent text-xs">{problem}</span>}
    </div>
  )
}

function useIgnore() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return useMutation(
    trpc.discovered.ignore.mutationOptions({
      onSuccess: ({ changedCount }, { ignored }) => {
        void queryClient.invalidateQueries(trpc.discovered.pathFilter())
        showToast({
          title: `${countOf(changedCount, 'machine')} ${ignored ? 'ignored' : 'waiting again'}.`,
          text: ignored
            ? 'Edges do not answer these machines and no longer report them. See them under Ignored.'
            : 'Edges report these machines at their next request.',
        })
      },
      onError: useFailureToast('Could not update the machines.'),
    }),
  )
}

type UrlFilters = ReturnType<typeof useUrlFilters<typeof filterShape>>

function useDiscovered({ search, site, state }: UrlFilters['filters']) {
  return useInfiniteQuery(
    useTRPC().discovered.list.infiniteQueryOptions(
      { ...(search && { search }), ...(site && { siteId: site }), ...(state && { state }) },
      { ...nextPage, placeholderData: keepPreviousData },
    ),
  )
}

function withChoice(chosen: ReadonlyMap<string, Discovered>, device: Discovered, isChosen: boolean) {
  const others = [...chosen].filter(([id]) => id !== device.id)
  return new Map(isChosen ? [...others, [device.id, device]] : others)
}

function StateFilter({ value = '', onChange }: { value: string | undefined; onChange: (state: string) => void }) {
  return (
    <select
      aria-label="State"
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className="h-8 rounded-md border border-line-strong bg-surface px-2 text-ink text-sm hover:bg-hover max-sm:w-full"
    >
      <option value="">Waiting</option>
      <option value="ignored">Ignored</option>
    </select>
  )
}

function Filters({ filters, setFilter, bind, clearFilters, filtered }: UrlFilters) {
  const sites = usePicker('site', {})
  return (
    <FilterBar onClear={filtered ? clearFilters : undefined}>
      <SearchFilter label="Search MAC, name or class" {...bind('search')} />
      <ObjectFilter
        label="Site"
        picker={sites}
        chosen={filters.site ? { value: filters.site, label: 'Selected site' } : null}
        {...bind('site')}
      />
      <StateFilter value={filters.state} onChange={(state) => setFilter('state', state)} />
    </FilterBar>
  )
}
