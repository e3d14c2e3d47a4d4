'use client'

import { useState } from 'react'
import { type Column, Table } from '../../../components/table'
import { Mono, Tag } from '../../../components/tag'
import { countOf, formatBytes, formatCount, formatDuration, formatOffset } from '../../../lib/format-quantity'
import { type FilesRead, percentOf } from './files-read'
import { type ProgramRead, sortReads, type UnitRead, type UnitStart } from './programs-read'

const footClasses = 'border-line border-t px-4 py-3 text-ink-faint text-xs'

const numbers: Column<UnitRead>[] = [
  {
    title: 'Gain',
    meaning: 'The time in which its reads alone waited for a disk of the edge: what the boot gains if they do not',
    sort: 'gainUs',
    align: 'right',
    cell: ({ gainUs }) => formatDuration(gainUs),
  },
  { title: 'Bytes', sort: 'bytes', align: 'right', cell: ({ bytes }) => formatBytes(bytes) },
  {
    title: 'Cold',
    meaning: 'Bytes that waited for a disk of the edge',
    sort: 'coldBytes',
    align: 'right',
    cell: ({ coldBytes }) => formatBytes(coldBytes),
  },
  {
    title: 'Ahead',
    meaning: 'Bytes that the boot profile had read before the system asked',
    sort: 'aheadBytes',
    align: 'right',
    from: 'md',
    cell: ({ aheadBytes }) => formatBytes(aheadBytes),
  },
  { title: 'Reads', sort: 'reads', align: 'right', from: 'md', cell: ({ reads }) => formatCount(reads) },
  {
    title: 'First',
    meaning: 'The first read, since the start of the boot',
    sort: 'firstUs',
    align: 'right',
    from: 'md',
    cell: ({ firstUs }) => formatOffset(firstUs),
  },
]

const programColumns: Column<ProgramRead>[] = [
  { title: 'Program', sort: 'name', wide: true, cell: ({ name }) => <Name name={name} /> },
  { title: 'Unit', sort: 'unit', cell: ({ unit }) => <Name name={unit} /> },
  ...numbers,
]

const unitColumns: Column<UnitRead>[] = [
  { title: 'Unit', sort: 'name', wide: true, cell: ({ name }) => <Name name={name} /> },
  ...numbers,
]

/** A name that the device gave; in brackets, it is the edge's or the device's word for what has none. */
function Name({ name }: { name: string }) {
  if (name === '') return <Tag>unknown</Tag>
  if (name.startsWith('(')) return <Tag>{name.slice(1, -1)}</Tag>
  return (
    <span className="block max-w-72 truncate max-sm:max-w-36" title={name}>
      <Mono>{name}</Mono>
    </span>
  )
}

export function ProgramsTable({ read }: { read: FilesRead }) {
  const [order, setOrder] = useState('-gainUs')
  return (
    <>
      <Table
        label="Programs that read the disk"
        columns={programColumns}
        rows={sortReads(read.programs, order)}
        rowKey={(program) => String(read.programs.indexOf(program))}
        sorting={{ value: order, onSort: setOrder }}
      />
      <p className={footClasses}>
        {read.trace &&
          `${percentOf(shareOf(read.trace.namedBytes, read.bytes))} of the bytes are of a program that the device named. `}
        {read.trace && read.trace.lost > 0 && `Its kernel dropped ${countOf(read.trace.lost, 'request')}.`}
      </p>
    </>
  )
}

export function UnitsTable({ read }: { read: FilesRead }) {
  const [order, setOrder] = useState('-gainUs')
  return (
    <>
      <Table
        label="Units that read the disk"
        columns={unitColumns}
        rows={sortReads(read.units, order)}
        rowKey={({ name }) => name}
        sorting={{ value: order, onSort: setOrder }}
      />
      <p className={footClasses}>
        {read.trace &&
          `${percentOf(shareOf(read.trace.unitBytes, read.bytes))} of the bytes are of a unit, the kernel or the initramfs.`}
      </p>
    </>
  )
}

function shareOf(bytes: number, all: number): number {
  return all === 0 ? 1 : Math.min(1, bytes / all)
}

const startColumns: Column<UnitStart>[] = [
  { title: 'Unit', wide: true, cell: ({ name }) => <Name name={name} /> },
  {
    title: 'Start',
    meaning: 'Since the kernel’s start',
    align: 'right',
    cell: ({ startUs }) => formatOffset(startUs),
  },
  { title: 'Took', align: 'right', cell: ({ durationUs }) => formatDuration(durationUs) },
]

/** What `systemd-analyze blame` and `critical-chain` print. */
export function StartTables({ read }: { read: FilesRead }) {
  return (
    <>
      {read.unitChain.length > 0 && (
        <section aria-label="Critical chain">
          <p className="px-4 pt-3 text-ink-soft text-sm">Critical chain: each unit waited for the one below it.</p>
          <Table
            label="Critical chain"
            columns={startColumns}
            rows={read.unitChain}
            rowKey={(unit) => `chain ${read.unitChain.indexOf(unit)}`}
          />
        </section>
      )}
      <section aria-label="Slowest units" className="border-line border-t">
        <p className="px-4 pt-3 text-ink-soft text-sm">Slowest units, in parallel with others.</p>
        <Table
          label="Slowest units"
          columns={startColumns}
          rows={read.slowestUnits}
          rowKey={(unit) => `slow ${read.slowestUnits.indexOf(unit)}`}
        />
      </section>
    </>
  )
}
