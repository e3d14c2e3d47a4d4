'use client'

import type { ReactNode } from 'react'
import { inSentence } from '../lib/in-sentence'
import { readableError } from '../lib/trpc'
import { Button } from './button'
import { EmptyState, ErrorState, Page, PageHeader } from './page'
import { type Column, Table, TableSkeleton } from './table'

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
}

/** A keyset list with its four states: loading, failed, empty, rows with "Load more" while there are more. */
export function PagedList<Row>({ label, query, columns, rowKey, empty }: PagedListProps<Row>) {
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
  if (rows.length === 0) return <>{empty}</>
  return (
    <>
      <Table label={label} columns={columns} rows={rows} rowKey={rowKey} />
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
}

/** A page that is one list: its title, what can be created, and the rows. */
export function ListPage<Row extends { id: string }>(props: ListPageProps<Row>) {
  const { title, summary, actions, query, columns, empty } = props
  return (
    <Page>
      <PageHeader title={title} summary={summary} actions={actions} />
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label={title}
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={<EmptyState {...empty} />}
        />
      </div>
    </Page>
  )
}
