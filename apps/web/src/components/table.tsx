'use client'

import type { ReactNode } from 'react'
import { classNames } from '../lib/class-names'
import { inSentence } from '../lib/in-sentence'
import { followRow } from './follow-row'
import { LoadingState, Skeleton } from './page'

export interface Column<Row> {
  title: string
  /** The meaning of a short title. */
  meaning?: string
  cell: (row: Row) => ReactNode
  /** The list can be sorted by it: the API's name of the order. */
  sort?: string
  /** Stands beside the title, such as the scale of a chart. */
  scale?: string
  /** Numbers and instants stand right; a list that is sorted by them begins with the largest. */
  align?: 'right'
  /** The least window width at which the column is shown; always without it. */
  from?: 'sm' | 'md' | 'lg' | 'xl' | '2xl'
  /** Takes the width that is left over. */
  wide?: boolean
  /** One of many narrow columns: on phones its title is vertical, so that all of them are visible. */
  narrow?: boolean
}

const shownFrom = {
  sm: 'hidden sm:table-cell',
  md: 'hidden md:table-cell',
  lg: 'hidden lg:table-cell',
  xl: 'hidden xl:table-cell',
  '2xl': 'hidden 2xl:table-cell',
} as const

function cellClass<Row>(column: Column<Row>): string {
  return classNames(
    'px-2 first:pl-4 last:pr-4',
    column.narrow && 'max-sm:px-1',
    column.align === 'right' && 'text-right',
    column.from && shownFrom[column.from],
    column.wide && 'w-full',
  )
}

/** The order of a list: the API's name of a field, with a hyphen from the largest value. */
export interface Sorting {
  value: string
  onSort: (value: string) => void
}

interface TableProps<Row> {
  /** The kind of the rows, for screen readers. */
  label: string
  columns: Column<Row>[]
  rows: Row[]
  rowKey: (row: Row) => string
  sorting?: Sorting | undefined
}

/** Rows of 40 px; the first column names the row and is its header. A row opens what its name links to. */
export function Table<Row>({ rows, ...props }: TableProps<Row>) {
  return <GroupedTable {...props} groups={[{ key: 'all', rows }]} />
}

interface RowGroup<Row> {
  key: string
  /** Stands above its rows, over all columns; none: there is one group, and it needs none. */
  heading?: ReactNode
  rows: Row[]
}

interface GroupedTableProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  groups: RowGroup<Row>[]
}

/** The same in groups; keys of rows are unique within their group. */
export function GroupedTable<Row>({ label, columns, groups, rowKey, sorting }: GroupedTableProps<Row>) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
      tabIndex={0}
      className="relative overflow-x-auto rounded-b-lg -outline-offset-2"
    >
      <table className="w-full text-left text-sm">
        <caption className="sr-only">{label}</caption>
        <TableHead columns={columns} sorting={sorting} />
        {groups.map((group) => (
          <tbody key={group.key} className="border-line border-t first-of-type:border-t-0">
            {group.heading && (
              <tr>
                <th
                  scope="rowgroup"
                  colSpan={columns.length}
                  className="bg-sunken px-4 py-2 font-medium text-ink text-xs"
                >
                  {group.heading}
                </th>
              </tr>
            )}
            {group.rows.map((row) => (
              <TableRow key={rowKey(row)} columns={columns} row={row} />
            ))}
          </tbody>
        ))}
      </table>
    </section>
  )
}

function TableRow<Row>({ columns, row }: { columns: Column<Row>[]; row: Row }) {
  return (
    <tr
      onClick={followRow}
      onAuxClick={followRow}
      className="group border-line border-t first:border-t-0 hover:bg-hover has-[>th_a]:cursor-pointer"
    >
      {columns.map((column, index) => {
        const Cell = index === 0 ? 'th' : 'td'
        return (
          <Cell
            key={column.title}
            {...(index === 0 ? { scope: 'row' as const } : {})}
            className={classNames('h-10 whitespace-nowrap py-1.5 font-normal', cellClass(column))}
          >
            {column.cell(row)}
          </Cell>
        )
      })}
    </tr>
  )
}

function TableHead<Row>({ columns, sorting }: { columns: Column<Row>[]; sorting: Sorting | undefined }) {
  return (
    <thead>
      <tr className="border-line border-b">
        {columns.map((column) => (
          <th
            key={column.title}
            scope="col"
            title={column.meaning}
            aria-sort={sortedBy(column, sorting)}
            className={classNames('h-8 whitespace-nowrap font-medium text-ink-faint text-xs', cellClass(column))}
          >
            <span className={classNames(column.narrow && 'max-sm:px-2 max-sm:[writing-mode:vertical-rl]')}>
              {column.sort && sorting ? (
                <SortButton
                  title={column.title}
                  field={column.sort}
                  largestFirst={column.align === 'right'}
                  sorting={sorting}
                />
              ) : (
                column.title
              )}
            </span>
            {column.scale && <span className="ml-2 font-normal">{column.scale}</span>}
          </th>
        ))}
      </tr>
    </thead>
  )
}

function sortedBy({ sort }: { sort?: string }, sorting: Sorting | undefined) {
  if (!sort || !sorting) return undefined
  if (sorting.value === sort) return 'ascending' as const
  return sorting.value === `-${sort}` ? ('descending' as const) : ('none' as const)
}

interface SortButtonProps {
  title: string
  field: string
  largestFirst: boolean
  sorting: Sorting
}

/** A second press turns the order. */
function SortButton({ title, field, largestFirst, sorting }: SortButtonProps) {
  const isDescending = sorting.value === `-${field}`
  const isSorted = isDescending || sorting.value === field
  const nextIsDescending = isSorted ? !isDescending : largestFirst
  // Its place is kept: a title that moves when it is pressed would be missed by a second press.
  const mark = (
    <span aria-hidden="true" className="inline-block w-3 text-center">
      {isSorted ? (isDescending ? '↓' : '↑') : ''}
    </span>
  )
  return (
    <button
      type="button"
      onClick={() => sorting.onSort(nextIsDescending ? `-${field}` : field)}
      className={classNames('rounded font-medium underline-offset-4 hover:underline', isSorted && 'text-ink')}
    >
      {largestFirst && mark}
      {title}
      {!largestFirst && mark}
    </button>
  )
}

/** As high as `rowCount` rows, so that the layout does not shift when the rows arrive. */
export function TableSkeleton({ label, rowCount = 8 }: { label: string; rowCount?: number }) {
  const widths = ['w-40', 'w-32', 'w-36', 'w-28']
  return (
    <LoadingState label={`Loading ${inSentence(label)}`}>
      <div className="h-8 border-line border-b" />
      {Array.from({ length: rowCount }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows without identity
        <div key={index} className="flex h-10 items-center gap-6 border-line border-t px-4 first:border-t-0">
          <Skeleton className={`h-3 ${widths[index % widths.length]}`} />
          <Skeleton className="h-3 flex-1" />
          <Skeleton className="h-3 w-16" />
        </div>
      ))}
    </LoadingState>
  )
}
