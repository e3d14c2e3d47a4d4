'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { FilterBar, SearchFilter, SelectFilter } from '../../components/filter'
import { Icon } from '../../components/icon'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { EmptyState } from '../../components/states'
import { useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { auditColumns } from './audit-columns'
import { actorOptions, auditFilterShape, auditInput, exportHref, nounOptions, periodOptions } from './audit-filters'

export function AuditPage() {
  const trpc = useTRPC()
  const mayRead = useMay('audit.read')
  const { filters, bind, clearFilters, filtered } = useUrlFilters(auditFilterShape)
  const input = useMemo(() => auditInput(filters, new Date()), [filters])
  const query = useInfiniteQuery(
    trpc.audit.list.infiniteQueryOptions(input, {
      getNextPageParam: (page) => page.nextCursor,
      placeholderData: keepPreviousData,
    }),
  )
  return (
    <Page>
      <PageHeader
        title="Audit log"
        summary="All changes, newest first. Entries cannot be changed. Retention is set by the server’s operator."
        actions={mayRead ? <ExportLinks input={input} /> : undefined}
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SearchFilter label="Search names" {...bind('search')} />
        <SelectFilter label="Type" options={nounOptions} {...bind('noun')} />
        <SelectFilter label="Actor" options={actorOptions} {...bind('actor')} />
        <SelectFilter label="Period" options={periodOptions} {...bind('period')} />
      </FilterBar>
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Audit log"
          query={query}
          columns={auditColumns}
          rowKey={({ id }) => id}
          empty={<NoEntries filtered={filtered} />}
        />
      </div>
    </Page>
  )
}

function ExportLinks({ input }: { input: Record<string, string> }) {
  return (
    <>
      {(['csv', 'jsonl'] as const).map((format) => (
        <a
          key={format}
          href={exportHref(input, format)}
          download
          className="flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-2.5 text-ink text-sm hover:bg-hover"
        >
          <Icon name="download" size={14} /> {format === 'csv' ? 'CSV' : 'JSON lines'}
        </a>
      ))}
    </>
  )
}

function NoEntries({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No entries match these filters." text="Clear a filter or choose a longer period." />
  ) : (
    <EmptyState title="No changes yet." text="Every change appears here with the person who made it." />
  )
}
