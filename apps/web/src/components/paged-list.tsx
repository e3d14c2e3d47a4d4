'use client'

import type { ReactNode } from 'react'
import { inSentence } from '../lib/in-sentence'
import { readableError } from '../lib/trpc'
import type { useNamedList } from '../lib/use-named-list'
import { usePicker } from '../lib/use-picker'
import { Button } from './button'
import { FilterBar, SearchFilter } from './filter'
import { ObjectFilter } from './object-picker'
import { EmptyState, ErrorState, Page, PageHeader } from './page'
import { type Column, type Sorting, Table, TableSkeleton } from './table'

/** The part of an infinite query that a list needs. */
interface PagedQuery<Row> {
  data: { pages: { items: Row[] }[] } | undefined
  error: unknown
  isPending: boolean
  hasNextPage: boolean
  isFetchingNextPage: boolean
  fetchNextPage: () => unknown
  refetch: () => unknown
}

interface PagedListProps<Row> {
  label: string
  query: PagedQuery<Row>
  columns: Column<Row>[]
  rowKey: (row: Row) => string
  empty: ReactNode
  sorting?: Sorting | undefined
}

/** A keyset list with its four states: loading, failed, empty, rows with "Load more" while there are more. */
export function PagedList<Row>({ label, query, columns, rowKey, empty, sorting }: PagedListProps<Row>) {
  if (query.isPending) return <TableSkeleton label={label} />
  if (query.data === undefined) {
    return (
      <ErrorState
        title={`Could not load ${inSentence(label)}.`}
        text={readableError(query.error)}
        onRetry={() => query.refetch()}
      />
    )
  }
  const rows = query.data.pages.flatMap((page) => page.items)
  // A page may have no rows of the filter, and more behind it.
  if (rows.length === 0 && !query.hasNextPage) return <>{empty}</>
  return (
    <>
      <Table label={label} columns={columns} rows={rows} rowKey={rowKey} sorting={sorting} />
      {query.hasNextPage && (
        <div className="flex justify-center border-line border-t p-3">
          <Button busy={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
            {query.isFetchingNextPage ? 'Loading' : 'Load more'}
          </Button>
        </div>
      )}
    </>
  )
}

interface ListPageProps<Row extends { id: string }> {
  /** Also the list's name for screen readers. */
  title: string
  summary: string
  actions?: ReactNode
  query: PagedQuery<Row>
  columns: Column<Row>[]
  /** Shown while the list is empty. */
  empty: { title: string; text: string }
  /** Order and filters, which live in the address. */
  list?: Pick<ReturnType<typeof useNamedList>, 'sorting' | 'search' | 'farm' | 'onClear'>
}

const nothingFound = { title: 'Nothing matches these filters.', text: 'Clear a filter, or shorten the search.' }

/** A page that is one list: its title, what can be created, and the rows. */
export function ListPage<Row extends { id: string }>(props: ListPageProps<Row>) {
  const { title, summary, actions, query, columns, empty, list } = props
  return (
    <Page>
      <PageHeader title={title} summary={summary} actions={actions} />
      {list && (
        <FilterBar onClear={list.onClear}>
          <SearchFilter label="Search name" {...list.search} />
          {list.farm.value && <FarmFilter {...list.farm} />}
        </FilterBar>
      )}
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label={title}
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          sorting={list?.sorting}
          empty={<EmptyState {...(list?.onClear ? nothingFound : empty)} />}
        />
      </div>
    </Page>
  )
}

/** Offered once a link has chosen a farm: most organizations have one. */
function FarmFilter({ value, onChange }: { value: string | undefined; onChange: (value: string) => void }) {
  return (
    <ObjectFilter
      label="Farm"
      picker={usePicker('farm', {})}
      value={value}
      chosen={value ? { value, label: 'Selected farm' } : null}
      onChange={onChange}
    />
  )
}
