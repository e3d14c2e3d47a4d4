'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { z } from 'zod'
import { FilterBar, SearchFilter, SelectFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { nextPage, type RouterInputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { ApproveKeys } from './approve-keys'
import { CsvButtons } from './csv-buttons'
import { NewDevice } from './device-actions'
import { deviceColumns } from './device-columns'
import { DeviceSelection, selectable } from './device-selection'
import { deviceTypeOptions, deviceTypes } from './device-type'
import { keyFilterOptions, keyFilters } from './key-text'

const filterShape = {
  sort: z.enum(['name', '-name', 'lastBootStartedAt', '-lastBootStartedAt']).optional(),
  farm: z.uuid().optional(),
  site: z.uuid().optional(),
  search: z.string().max(64).optional(),
  collection: z.uuid().optional(),
  type: z.enum(deviceTypes).optional(),
  cache: z.enum(['warning', 'critical', 'full']).optional(),
  key: z.enum(keyFilters).optional(),
  waits: z.enum(['lost_disk']).optional(),
  last: z.enum(['booting', 'ready', 'failed', 'silent', 'no_response', 'superseded', 'local_disk', 'never']).optional(),
}

const lastOutcomeOptions = [
  { value: 'booting', label: 'Booting now' },
  { value: 'ready', label: 'Ready' },
  { value: 'failed', label: 'Failed' },
  { value: 'silent', label: 'Timed out' },
  { value: 'no_response', label: 'No response' },
  { value: 'superseded', label: 'Restarted' },
  { value: 'local_disk', label: 'Booted from local disk' },
  { value: 'never', label: 'Never booted' },
]
const writeCacheOptions = [
  { value: 'warning', label: '80 % or more' },
  { value: 'critical', label: '95 % or more' },
  { value: 'full', label: 'Full' },
]
const waitOptions = [{ value: 'lost_disk', label: 'Restart (lost its disk)' }]
/** How soon the list learns that an order was taken or has expired. */
const orderRefreshMs = 3000

export function DevicesPage() {
  const url = useUrlFilters(filterShape)
  const { filters, setFilter, filtered } = url
  const mayChange = useMay('device.change')
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const filter = filterOf(filters)
  const query = useDevices({ ...filter, ...(filters.sort && { sort: filters.sort }) })
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
      <DeviceFilters {...url} />
      {filters.collection && <ApproveKeys collectionId={filters.collection} />}
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
          sorting={{ value: filters.sort ?? 'name', onSort: (sort) => setFilter('sort', sort) }}
          empty={<NoDevices filtered={filtered} />}
        />
      </div>
    </Page>
  )
}

type Url = ReturnType<typeof useUrlFilters<typeof filterShape>>

function DeviceFilters({ filters, bind, clearFilters, filtered }: Url) {
  const collections = usePicker('collection', {})
  const sites = usePicker('site', {})
  const farms = usePicker('farm', {})
  return (
    <FilterBar onClear={filtered ? clearFilters : undefined}>
      <SearchFilter label="Search name or MAC" {...bind('search')} />
      <ObjectFilter
        label="Site"
        picker={sites}
        chosen={filters.site ? { value: filters.site, label: 'Selected site' } : null}
        {...bind('site')}
      />
      {filters.farm && (
        <ObjectFilter
          label="Farm"
          picker={farms}
          chosen={{ value: filters.farm, label: 'Selected farm' }}
          {...bind('farm')}
        />
      )}
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
      <SelectFilter label="Key" options={keyFilterOptions} {...bind('key')} />
      <SelectFilter label="Waits for" options={waitOptions} {...bind('waits')} />
    </FilterBar>
  )
}

function NoDevices({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No devices match these filters." text="Clear a filter or shorten the search." />
  ) : (
    <EmptyState title="No devices yet." text="Register a device, or adopt one under Discovered." />
  )
}

function filterOf({ search, farm, site, collection, type, last, cache, key, waits }: Url['filters']) {
  return {
    ...(search && { search }),
    ...(farm && { farmId: farm }),
    ...(site && { siteId: site }),
    ...(collection && { collectionId: collection }),
    ...(type && { deviceType: type }),
    ...(last && { lastOutcome: last }),
    ...(cache && { writeCache: cache }),
    ...(key && { key }),
    ...(waits && { waitsFor: waits }),
  }
}

function useDevices(filter: RouterInputs['device']['list']) {
  return useInfiniteQuery(
    useTRPC().device.list.infiniteQueryOptions(filter, {
      refetchInterval: ({ state }) =>
        state.data?.pages.some(({ items }) => items.some(({ powerOrder }) => powerOrder?.state === 'waiting'))
          ? orderRefreshMs
          : false,
      ...nextPage,
      placeholderData: keepPreviousData,
    }),
  )
}
