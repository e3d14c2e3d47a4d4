'use client'

import { useMemo } from 'react'
import { DownloadLink } from '../../components/button'
import { FilterBar, InstantFilter, MoreFilters, SearchFilter, SelectFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { useFirstPaint } from '../../lib/first-paint'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import {
  bootExportHref,
  bootFilterShape,
  bootListInput,
  causeOptions,
  firstSort,
  originOptions,
  outcomeOptions,
  periodOptions,
  slowerOptions,
} from './boot-filters'
import { BootList } from './boot-list'
import { VersionFilter } from './version-filter'

export function BootsPage() {
  const url = useUrlFilters(bootFilterShape)
  const { filters, setFilter, filtered } = url
  const paint = useFirstPaint()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list of the first paint stays until a filter changes
  const input = useMemo(() => bootListInput(filters, paint ? new Date(paint.now) : new Date()), [filters])
  const sorting = { value: filters.sort ?? firstSort, onSort: (sort: string) => setFilter('sort', sort) }
  return (
    <Page>
      <PageHeader
        title="Boots"
        summary="Every boot of every device."
        actions={
          <>
            <DownloadLink href={bootExportHref(input, 'csv')}>Export CSV</DownloadLink>
            <DownloadLink href={bootExportHref(input, 'jsonl')}>Export JSON</DownloadLink>
          </>
        }
      />
      <BootFilterBar {...url} />
      <div className="rounded-lg border border-line bg-surface">
        <BootList input={input} sorting={sorting} empty={<NoBoots filtered={filtered} />} />
      </div>
    </Page>
  )
}

type UrlFilters = ReturnType<typeof useUrlFilters<typeof bootFilterShape>>

function BootFilterBar({ filters, bind, clearFilters, filtered }: UrlFilters) {
  const { cause, collection, edge, vdisk, version, since, until, farm } = filters
  const isMore = [cause, collection, edge, vdisk, version, since, until, farm].some(Boolean)
  return (
    <FilterBar onClear={filtered ? clearFilters : undefined}>
      <SearchFilter label="Search name or MAC" {...bind('search')} />
      <SelectFilter label="Outcome" options={outcomeOptions} {...bind('outcome')} />
      <Chosen noun="site" label="Site" {...bind('site')} />
      <Chosen noun="device" label="Device" {...bind('device')} />
      <SelectFilter label="Period" options={periodOptions} {...bind('period')} />
      <SelectFilter label="Duration" options={slowerOptions} {...bind('slower')} />
      <SelectFilter label="Origin" options={originOptions} {...bind('origin')} />
      <MoreFilters isSet={isMore}>
        <SelectFilter label="Cause" options={causeOptions} {...bind('cause')} />
        <Chosen noun="collection" label="Collection" {...bind('collection')} />
        <Chosen noun="edge" label="Edge" {...bind('edge')} />
        <Chosen noun="vdisk" label="vDisk" {...bind('vdisk')} />
        <VersionFilter vdiskId={vdisk} {...bind('version')} />
        <Chosen noun="farm" label="Farm" {...bind('farm')} />
        <InstantFilter label="From" {...bind('since')} />
        <InstantFilter label="Until" {...bind('until')} />
      </MoreFilters>
    </FilterBar>
  )
}

interface ChosenProps {
  noun: 'farm' | 'site' | 'device' | 'collection' | 'edge' | 'vdisk'
  label: string
  value: string | undefined
  onChange: (value: string) => void
}

function Chosen({ noun, label, value, onChange }: ChosenProps) {
  return (
    <ObjectFilter
      label={label}
      picker={usePicker(noun, {})}
      value={value}
      chosen={value ? { value, label: `Selected ${label === 'vDisk' ? label : label.toLowerCase()}` } : null}
      onChange={onChange}
    />
  )
}

function NoBoots({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No boots match these filters." text="Clear a filter or choose a longer period." />
  ) : (
    <EmptyState
      title="No boots yet."
      text="A boot appears here when a device at one of your sites requests a boot program from an edge."
    />
  )
}
