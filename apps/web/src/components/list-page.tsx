import type { ReactNode } from 'react'
import { Page, PageHeader } from './page-header'
import { PagedList, type PagedQuery } from './paged-list'
import { EmptyState } from './states'
import type { Column } from './table'

interface ListPageProps<Row extends { id: string }> {
  /** Also the list's name for screen readers. */
  title: string
  summary: string
  actions?: ReactNode
  query: PagedQuery<Row>
  columns: Column<Row>[]
  /** Shown where there is nothing yet. */
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
