'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { z } from 'zod'
import { LinkButton } from '../../components/button'
import { FilterBar, SearchFilter, SelectFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { nextPage, type RouterInputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { AddEdge } from './add-edge'
import { edgeColumns } from './edge-columns'
import { heartbeatRefreshMs } from './heartbeat-refresh'

const sortFields = ['name', 'siteName', 'agentVersion', 'heartbeatAt'] as const
const sorts = sortFields.flatMap((field) => [field, `-${field}`] as const)
const filterShape = {
  sort: z.enum(sorts).optional(),
  search: z.string().max(64).optional(),
  farm: z.uuid().optional(),
  site: z.uuid().optional(),
  state: z.enum(['online', 'offline', 'revoked']).optional(),
}

const stateOptions = [
  { value: 'online', label: 'Online' },
  { value: 'offline', label: 'Offline' },
  { value: 'revoked', label: 'Revoked' },
]

type Url = ReturnType<typeof useUrlFilters<typeof filterShape>>

export function EdgesPage() {
  const trpc = useTRPC()
  const maySeeReleases = useMay('rollout.read')
  const url = useUrlFilters(filterShape)
  const query = useInfiniteQuery(
    trpc.edge.list.infiniteQueryOptions(inputOf(url.filters), {
      ...nextPage,
      refetchInterval: heartbeatRefreshMs,
      placeholderData: keepPreviousData,
    }),
  )
  return (
    <Page>
      <PageHeader
        title="Edges"
        summary="Servers at your sites that boot devices."
        actions={
          <>
            {maySeeReleases && <LinkButton href="/edges/rollouts">Releases</LinkButton>}
            <AddEdge />
          </>
        }
      />
      <EdgeFilters {...url} />
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Edges"
          query={query}
          columns={edgeColumns}
          rowKey={({ id }) => id}
          sorting={{ value: url.filters.sort ?? 'name', onSort: (sort) => url.setFilter('sort', sort) }}
          empty={<NoEdges filtered={url.filtered} />}
        />
      </div>
    </Page>
  )
}

function EdgeFilters({ filters: { farm, site }, bind, clearFilters, filtered }: Url) {
  const sites = usePicker('site', farm ? { farmId: farm } : {})
  const farms = usePicker('farm', {})
  return (
    <FilterBar onClear={filtered ? clearFilters : undefined}>
      <SearchFilter label="Search name" {...bind('search')} />
      <SelectFilter label="Status" options={stateOptions} {...bind('state')} />
      <ObjectFilter
        label="Site"
        picker={sites}
        chosen={site ? { value: site, label: 'Selected site' } : null}
        {...bind('site')}
      />
      {farm && (
        <ObjectFilter label="Farm" picker={farms} chosen={{ value: farm, label: 'Selected farm' }} {...bind('farm')} />
      )}
    </FilterBar>
  )
}

function inputOf({ sort, search, farm, site, state }: Url['filters']): RouterInputs['edge']['list'] {
  return {
    ...(sort && { sort }),
    ...(search && { search }),
    ...(farm && { farmId: farm }),
    ...(site && { siteId: site }),
    ...(state && { state }),
  }
}

function NoEdges({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No edges match these filters." text="Clear a filter or shorten the search." />
  ) : (
    <EmptyState title="No edges yet." text="“Add edge” generates a command to run on a server at one of your sites." />
  )
}
