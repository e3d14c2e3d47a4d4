'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { z } from 'zod'
import { ObjectLink } from '../../components/button'
import { FilterBar, SearchFilter, SelectFilter } from '../../components/filter'
import { Age } from '../../components/instant'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, Page, PageHeader, Unknown } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { type Listed, nextPage, type RouterInputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { BootDuration, OriginTags, OutcomeTag } from '../boots/outcome-tag'
import { useMay } from '../session/use-may'
import { ApproveKeys } from './approve-keys'
import { CsvButtons } from './csv-buttons'
import { NewDevice } from './device-actions'
import { KeyTag } from './device-key'
import { DeviceSelection, selectable } from './device-selection'
import { DeviceStateCell } from './device-state'
import { DeviceTypeTag, deviceTypeOptions, deviceTypes } from './device-type'
import { keyFilterOptions, keyFilters } from './key-text'
import { PowerMenu } from './power-buttons'
import { PowerOrderTag } from './power-order-note'
import { takesOrders } from './power-text'
import { WaitTag } from './wait-notice'
import { WriteCacheTag } from './write-cache'

type DeviceSummary = Listed<'device'>

const deviceColumns: Column<DeviceSummary>[] = [
  {
    title: 'Name',
    sort: 'name',
    cell: (device) => (
      <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-1 max-sm:max-w-40 sm:min-w-36">
        <ObjectLink href={`/devices/${device.id}`}>{device.name}</ObjectLink>
        {device.lastBoot?.simulated && <OriginTags simulated generated={false} />}
        <DeviceTypeTag type={device.deviceType} />
        <WriteCacheTag cache={device.now.state === 'off' ? null : (device.lastBoot?.writeCache ?? null)} />
        <WaitTag wait={device.waitsFor} />
        <KeyTag label={device.keyLabel} quiet />
        <PowerOrderTag order={device.powerOrder} />
        {!device.enabled && <Tag title="Edges do not serve this device.">disabled</Tag>}
      </span>
    ),
  },
  {
    title: 'MAC address',
    from: 'lg',
    cell: (device) => <span className="font-mono text-ink-soft text-xs">{device.mac}</span>,
  },
  { title: 'Collection', from: 'lg', cell: (device) => device.collectionName },
  { title: 'Site', from: 'xl', cell: (device) => device.siteName },
  {
    title: 'vDisk',
    from: 'lg',
    wide: true,
    cell: ({ vdisk }) =>
      vdisk ? (
        <Link prefetch={false} href={`/vdisks/${vdisk.id}`} className="rounded underline-offset-4 hover:underline">
          {vdisk.name} <span className="text-ink-soft">v{vdisk.versionNumber}</span>
        </Link>
      ) : (
        <Unknown label="none" />
      ),
  },
  { title: 'Status', cell: (device) => <DeviceStateCell device={device} /> },
  {
    title: 'Last boot',
    from: 'md',
    cell: ({ lastBoot }) =>
      lastBoot ? (
        <Link prefetch={false} href={`/boots/${lastBoot.id}`} className="rounded-full">
          <OutcomeTag outcome={lastBoot.outcome} />
        </Link>
      ) : (
        <span className="text-ink-faint">never</span>
      ),
  },
  {
    title: 'Duration',
    from: '2xl',
    align: 'right',
    cell: ({ lastBoot }) => (lastBoot ? <BootDuration boot={lastBoot} /> : <Unknown />),
  },
  {
    title: 'When',
    sort: 'lastBootStartedAt',
    from: 'sm',
    align: 'right',
    cell: ({ lastBoot }) => (lastBoot ? <Age at={lastBoot.startedAt} /> : <Unknown />),
  },
  {
    title: 'Power',
    align: 'right',
    cell: (device) =>
      takesOrders(device) ? (
        <span className="inline-flex">
          <PowerMenu device={device} />
        </span>
      ) : (
        <Unknown label="power control unavailable" />
      ),
  },
]

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
