'use client'

import { useState } from 'react'
import { Button, ObjectLink } from '../../components/button'
import { EmptyState } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { formatCount, formatDuration } from '../../lib/format-quantity'
import { hrefOfCell } from './storm-map'
import { elapsedMsOf, type StormCell } from './storm-model'
import { stateLook } from './storm-states'

const rowsAtOnce = 100

interface StormTableProps {
  cells: StormCell[]
  slowKeys: ReadonlySet<string>
  nowMs: number
}

/** The cells in words, in the same order. */
export function StormTable({ cells, slowKeys, nowMs }: StormTableProps) {
  const [count, setCount] = useState(rowsAtOnce)
  const columns: Column<StormCell>[] = [
    { title: 'Device', cell: (cell) => <ObjectLink href={hrefOfCell(cell)}>{cell.name}</ObjectLink> },
    {
      title: 'Phase',
      wide: true,
      cell: ({ state, key }) => (
        <>
          {stateLook(state).title}
          {slowKeys.has(key) && <span className="text-ink-soft">, slower than usual</span>}
        </>
      ),
    },
    { title: 'Site', from: 'sm', cell: ({ siteName }) => <span className="text-ink-soft">{siteName}</span> },
    {
      title: 'Boot time',
      align: 'right',
      cell: (cell) => {
        const elapsedMs = elapsedMsOf(cell, nowMs)
        return elapsedMs === null ? '' : formatDuration(elapsedMs * 1000)
      },
    },
  ]
  if (cells.length === 0) return <EmptyState title="No devices." text="This part of the organization has no devices." />
  return (
    <>
      <Table label="Devices by phase" columns={columns} rows={cells.slice(0, count)} rowKey={({ key }) => key} />
      {count < cells.length && (
        <div className="flex items-center gap-3 border-line border-t px-4 py-3 text-ink-soft text-sm">
          <Button onClick={() => setCount(count + rowsAtOnce)}>Show more</Button>
          {formatCount(count)} of {formatCount(cells.length)}
        </div>
      )}
    </>
  )
}
