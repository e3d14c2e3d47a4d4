'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../../components/button'
import { ErrorState, LoadingState, Panel, Skeleton } from '../../../components/page'
import { type Column, Table } from '../../../components/table'
import { Mono, Tag } from '../../../components/tag'
import { countOf, formatBytes, formatCount, formatDuration, formatOffset } from '../../../lib/format-quantity'
import { readableError, useTRPC } from '../../../lib/trpc'
import { DiskMap } from './disk-map'
import { type FileRead, type FilesRead, percentOf, sortFiles } from './files-read'
import { adviceOf, traceProblem } from './programs-read'
import { ProgramsTable, StartTables, UnitsTable } from './programs-tables'

const rowsFirst = 15

const columns: Column<FileRead>[] = [
  { title: 'File', sort: 'name', wide: true, cell: (file) => <FileName file={file} /> },
  {
    title: 'Time',
    meaning: 'Until the bytes were in the hand of the edge, for all reads together',
    sort: 'storageUs',
    align: 'right',
    cell: ({ storageUs }) => formatDuration(storageUs),
  },
  { title: 'Bytes', sort: 'bytes', align: 'right', cell: ({ bytes }) => formatBytes(bytes) },
  { title: 'Reads', sort: 'reads', align: 'right', cell: ({ reads }) => formatCount(reads) },
  {
    title: 'Cold',
    meaning: 'Reads that waited for a disk of the edge',
    sort: 'coldReads',
    align: 'right',
    cell: ({ coldReads }) => formatCount(coldReads),
  },
  {
    title: 'First',
    meaning: 'The first read, since the start of the boot',
    sort: 'firstUs',
    align: 'right',
    from: 'md',
    cell: ({ firstUs }) => formatOffset(firstUs),
  },
]

const kindTags: Partial<Record<FileRead['kind'], string>> = { free: 'in no file', unmapped: 'unknown' }

function FileName({ file: { name, kind } }: { file: FileRead }) {
  const tag = kindTags[kind]
  const isPath = kind === 'file' || kind === 'directory' || kind === 'link'
  return (
    <span className="inline-flex max-w-[36rem] items-center gap-2 max-sm:max-w-48">
      <span className="truncate" title={name}>
        {isPath ? <Mono>{name}</Mono> : name}
      </span>
      {tag && <Tag>{tag}</Tag>}
    </span>
  )
}

/** What a finished boot read, by file; nothing where its edge has sent no list. */
export function FilesPanel({ bootId, isOver }: { bootId: string; isOver: boolean }) {
  const options = useTRPC().boot.filesRead.queryOptions({ bootId }, { enabled: isOver })
  const query = useQuery(options)
  if (!isOver || query.data === null) return null
  if (query.data)
    return (
      <Panel title="Files read" aside={<Aside read={query.data} />} flush>
        <Views read={query.data} />
      </Panel>
    )
  return (
    <Panel title="Files read" flush>
      {query.error ? (
        <ErrorState
          title="Could not load what the boot read."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <LoadingState label="Loading files">
          <Skeleton className="m-4 h-40" />
        </LoadingState>
      )}
    </Panel>
  )
}

function Aside({ read }: { read: FilesRead }) {
  const named = read.bytes === 0 ? 1 : read.namedBytes / read.bytes
  return (
    <span>
      {countOf(read.reads, 'read')} of {formatBytes(read.bytes)}, {percentOf(named)} named
    </span>
  )
}

const views = {
  files: 'Files',
  programs: 'Programs',
  units: 'Units',
  starts: 'Unit start times',
} as const
type View = keyof typeof views

function viewsOf(read: FilesRead): View[] {
  const shown: View[] = ['files']
  if (read.programs.length > 0) shown.push('programs')
  if (read.units.length > 0) shown.push('units')
  if (read.slowestUnits.length > 0) shown.push('starts')
  return shown
}

function Views({ read }: { read: FilesRead }) {
  const [view, setView] = useState<View>('files')
  const shown = viewsOf(read)
  const problem = traceProblem(read)
  const advice = adviceOf(read)
  return (
    <>
      {advice && <p className="px-4 pt-4 text-sm">{advice}</p>}
      {problem && <p className="px-4 pt-4 text-ink-soft text-sm">{problem}</p>}
      {shown.length > 1 && (
        <fieldset className="flex flex-wrap gap-2 px-4 pt-4">
          <legend className="sr-only">Show by</legend>
          {shown.map((each) => (
            <Button
              key={each}
              small
              look={each === view ? 'primary' : 'quiet'}
              aria-pressed={each === view}
              onClick={() => setView(each)}
            >
              {views[each]}
            </Button>
          ))}
        </fieldset>
      )}
      <div className={shown.length > 1 ? 'pt-4' : undefined}>
        {view === 'files' && <Files read={read} />}
        {view === 'programs' && <ProgramsTable read={read} />}
        {view === 'units' && <UnitsTable read={read} />}
        {view === 'starts' && <StartTables read={read} />}
      </div>
    </>
  )
}

function Files({ read }: { read: FilesRead }) {
  const [order, setOrder] = useState('-storageUs')
  const [all, setAll] = useState(false)
  const sorted = sortFiles(read.files, order)
  const shown = all ? sorted : sorted.slice(0, rowsFirst)
  return (
    <>
      <DiskMap read={read} />
      <Table
        label="Files read"
        columns={columns}
        rows={shown}
        rowKey={(file) => String(read.files.indexOf(file))}
        sorting={{ value: order, onSort: setOrder }}
      />
      <div className="flex flex-wrap items-center gap-3 border-line border-t px-4 py-3 text-ink-faint text-xs">
        {sorted.length > rowsFirst && (
          <Button small aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? 'Show fewer' : `Show ${formatCount(sorted.length)} files`}
          </Button>
        )}
        <span>
          {read.fileCount > read.files.length &&
            `${formatCount(read.fileCount)} files and areas were read; these took the most time or bytes. `}
          {read.aheadReads > 0 && `${countOf(read.aheadReads, 'read')} came ahead of demand. `}
          {read.droppedReads > 0 && `${countOf(read.droppedReads, 'read')} beyond the edge’s limit are not counted. `}
          {read.coldReads > 0 && `${countOf(read.coldReads, 'read')} waited for a disk of the edge.`}
        </span>
      </div>
      <SlowestReads read={read} />
    </>
  )
}

type SlowRead = FilesRead['slowest'][number]

const slowColumns: Column<SlowRead>[] = [
  { title: 'At', align: 'right', cell: ({ atUs }) => formatOffset(atUs) },
  { title: 'Time', align: 'right', cell: ({ storageUs }) => formatDuration(storageUs) },
  { title: 'Bytes', align: 'right', cell: ({ bytes }) => formatBytes(bytes) },
  { title: 'Place', align: 'right', from: 'md', cell: ({ offset }) => formatCount(offset) },
  {
    title: 'File',
    wide: true,
    cell: ({ name, isAhead }) => (
      <>
        <Mono>{name}</Mono> {isAhead && <Tag>ahead</Tag>}
      </>
    ),
  },
]

function SlowestReads({ read }: { read: FilesRead }) {
  const [open, setOpen] = useState(false)
  if (read.slowest.length === 0) return null
  return (
    <div className="border-line border-t">
      <div className="px-4 py-3">
        <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide slowest reads' : 'Show slowest reads'}
        </Button>
      </div>
      {open && (
        <Table
          label="Slowest reads"
          columns={slowColumns}
          rows={read.slowest}
          rowKey={(slow) => String(read.slowest.indexOf(slow))}
        />
      )}
    </div>
  )
}
