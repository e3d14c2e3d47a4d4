'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { z } from 'zod'
import { FilterBar, SearchFilter } from '../../components/filter'
import { LinkButton } from '../../components/link-button'
import { ObjectFilter } from '../../components/object-picker'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { EmptyState } from '../../components/states'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { AdoptDialog } from './adopt-dialog'
import { type Discovered, discoveredColumns } from './discovered-columns'
import { SelectionBar } from './selection-bar'

const filterShape = {
  search: z.string().max(64).optional(),
  site: z.uuid().optional(),
  state: z.enum(['ignored']).optional(),
}

export function DiscoveredPage() {
  const trpc = useTRPC()
  const mayAdopt = useMay('discovery.decide')
  const { filters, setFilter, bind, clearFilters, filtered } = useUrlFilters(filterShape)
  const [selected, setSelected] = useState<ReadonlyMap<string, Discovered>>(new Map())
  const [adopting, setAdopting] = useState<Discovered[]>([])
  const sites = usePicker('site', {})
  const query = useInfiniteQuery(
    trpc.discovered.list.infiniteQueryOptions(
      {
        ...(filters.search && { search: filters.search }),
        ...(filters.site && { siteId: filters.site }),
        ...(filters.state && { state: filters.state }),
      },
      { getNextPageParam: (page) => page.nextCursor, placeholderData: keepPreviousData },
    ),
  )
  const shown = query.data?.pages.flatMap((page) => page.items) ?? []
  // What is gone from the list is no longer chosen.
  const chosen = shown.filter(({ id }) => selected.has(id))
  const columns = discoveredColumns({
    selected: new Set(selected.keys()),
    onSelect: (device, isSelected) =>
      setSelected((before) => {
        const after = new Map(before)
        if (isSelected) after.set(device.id, device)
        else after.delete(device.id)
        return after
      }),
    onAdopt: mayAdopt ? (device) => setAdopting([device]) : undefined,
  })
  return (
    <Page>
      <PageHeader
        title="Discovered"
        summary="Unregistered machines seen on your networks."
        actions={
          <LinkButton href={filters.site ? `/discovered/rules?site=${filters.site}` : '/discovered/rules'}>
            Rules
          </LinkButton>
        }
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SearchFilter label="Search MAC, name or class" {...bind('search')} />
        <ObjectFilter
          label="Site"
          picker={sites}
          chosen={filters.site ? { value: filters.site, label: 'Selected site' } : null}
          labelOf={({ name }) => name}
          {...bind('site')}
        />
        <select
          aria-label="State"
          value={filters.state ?? ''}
          onChange={(event) => setFilter('state', event.target.value)}
          className="h-8 rounded-md border border-line-strong bg-surface px-2 text-ink text-sm hover:bg-hover max-sm:w-full"
        >
          <option value="">Waiting</option>
          <option value="ignored">Ignored</option>
        </select>
      </FilterBar>
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
