'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { z } from 'zod'
import { FilterBar, SearchFilter, SelectFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { EmptyState } from '../../components/states'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { CsvButtons } from './csv-buttons'
import { NewDevice } from './device-actions'
import { deviceColumns } from './device-columns'
import { DeviceSelection, selectable } from './device-selection'
import { deviceTypeOptions, deviceTypes } from './device-type'

const filterShape = {
  search: z.string().max(64).optional(),
  collection: z.uuid().optional(),
  type: z.enum(deviceTypes).optional(),
  cache: z.enum(['warning', 'critical', 'full']).optional(),
  last: z.enum(['booting', 'ready', 'failed', 'silent', 'superseded', 'local_disk', 'never']).optional(),
}

const lastOutcomeOptions = [
  { value: 'booting', label: 'Booting now' },
  { value: 'ready', label: 'Ready' },
  { value: 'failed', label: 'Failed' },
  { value: 'silent', label: 'Timed out' },
  { value: 'superseded', label: 'Restarted' },
  { value: 'local_disk', label: 'Booted from local disk' },
  { value: 'never', label: 'Never booted' },
]
const writeCacheOptions = [
  { value: 'warning', label: '80 % or more' },
  { value: 'critical', label: '95 % or more' },
  { value: 'full', label: 'Full' },
]
/** How soon the list hears that an order was taken or has expired. */
const orderRefreshMs = 3000

export function DevicesPage() {
  const trpc = useTRPC()
  const { filters, bind, clearFilters, filtered } = useUrlFilters(filterShape)
  const collections = usePicker('collection', {})
  const mayChange = useMay('device.change')
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const filter = {
    ...(filters.search && { search: filters.search }),
    ...(filters.collection && { collectionId: filters.collection }),
    ...(filters.type && { deviceType: filters.type }),
    ...(filters.last && { lastOutcome: filters.last }),
    ...(filters.cache && { writeCache: filters.cache }),
  }
  const query = useInfiniteQuery(
    trpc.device.list.infiniteQueryOptions(filter, {
      refetchInterval: ({ state }) =>
        state.data?.pages.some(({ items }) => items.some(({ powerOrder }) => powerOrder?.state === 'waiting'))
          ? orderRefreshMs
          : false,
      getNextPageParam: (page) => page.nextCursor,
      placeholderData: keepPreviousData,
    }),
  )
  const shown = query.data?.pages.flatMap((page) => page.items) ?? []
  const toggle = (id: string) =>
    setSelected((before) => new Set(before.has(id) ? [...before].filter((one) => one !== id) : [...before, id]))
  const columns = mayChange ? selectable(deviceColumns, { selected, onSelect: toggle }) : deviceColumns
  return (
    <Page>
      <PageHeader
        title="Devices"
        summary="All diskless devices."
        actions={
          <>
            <CsvButtons filter={filter} />
            <NewDevice />
          </>
        }
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SearchFilter label="Search name or MAC" {...bind('search')} />
        <ObjectFilter
          label="Collection"
          picker={collections}
          chosen={filters.collection ? { value: filters.collection, label: 'Selected collection' } : null}
          labelOf={({ name, siteName }) => `${name}, ${siteName}`}
          {...bind('collection')}
        />
        <SelectFilter label="Type" options={deviceTypeOptions} {...bind('type')} />
        <SelectFilter label="Last boot" options={lastOutcomeOptions} {...bind('last')} />
        <SelectFilter label="Write cache" options={writeCacheOptions} {...bind('cache')} />
      </FilterBar>
      <div className="rounded-lg border border-line bg-surface">
        {mayChange && shown.length > 0 && (
          <DeviceSelection
            shown={shown}
            selected={selected}
            filter={filter}
            onSelect={(ids) => setSelected(new Set(ids))}
          />
        )}
        <PagedList
          label="Devices"
          query={query}
          columns={columns}
          rowKey={(device) => device.id}
          empty={<NoDevices filtered={filtered} />}
        />
      </div>
    </Page>
  )
}

function NoDevices({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No devices match these filters." text="Clear a filter or shorten the search." />
  ) : (
    <EmptyState title="No devices yet." text="Register a device, or adopt one under Discovered." />
  )
}
