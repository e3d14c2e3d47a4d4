'use client'

import { useMemo } from 'react'
import { DownloadLink } from '../../components/button'
import { SelectFilter } from '../../components/filter'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { useFirstPaint } from '../../lib/first-paint'
import { useUrlFilters } from '../../lib/use-url-filters'
import { BootFilterBar } from './boot-filter-bar'
import { bootExportHref, bootFilterShape, bootListInput, firstSort, sortOptions } from './boot-filters'
import { BootList } from './boot-list'

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
      <BootFilterBar {...url}>
        <SelectFilter
          label="Sort"
          first="Sort: newest first"
          options={sortOptions.filter(({ value }) => value !== firstSort)}
          {...url.bind('sort')}
        />
      </BootFilterBar>
      <div className="rounded-lg border border-line bg-surface">
        <BootList input={input} sorting={sorting} empty={<NoBoots filtered={filtered} />} />
      </div>
    </Page>
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
