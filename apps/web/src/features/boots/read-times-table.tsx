import { Unknown } from '../../components/panel'
import { type Column, Table } from '../../components/table'
import { countOf, formatDuration } from '../../lib/format-quantity'
import type { BootDetail } from './boot-types'
import { type ReadTimesRow, readTimesRows } from './read-times-rows'

const columns: Column<ReadTimesRow>[] = [
  { title: 'Part', cell: ({ title, meaning }) => <span title={meaning}>{title}</span> },
  { title: 'Median', align: 'right', cell: ({ times }) => duration(times?.medianUs) },
  {
    title: 'p95',
    meaning: '95 % took no longer',
    align: 'right',
    cell: ({ times }) => duration(times?.p95Us),
  },
  { title: 'Longest', align: 'right', cell: ({ times }) => duration(times?.maxUs) },
  { title: 'Together', align: 'right', cell: ({ times }) => duration(times?.sumUs) },
  { title: 'Share', cell: ({ share, colour }) => <Share share={share} colour={colour} /> },
]

/** The parts that the boot's reads had on their way. */
export function ReadTimesTable({ readTimes }: { readTimes: NonNullable<BootDetail['readTimes']> }) {
  return (
    <>
      <Table
        label="Where the time of the reads went"
        columns={columns}
        rows={readTimesRows(readTimes)}
        rowKey={({ title }) => title}
      />
      <p className="px-4 py-3 text-ink-faint text-xs">
        Reads overlap, so the parts together may be longer than the boot. Median and p95 are estimates.
        {readTimes.coldReads > 0 && ` ${countOf(readTimes.coldReads, 'read')} waited for the edge’s disk.`}
      </p>
    </>
  )
}

function duration(us: number | undefined) {
  return us === undefined ? <Unknown label="not measured" /> : formatDuration(us)
}

function Share({ share, colour }: { share: number | null; colour: string }) {
  if (share === null) return <Unknown label="not measured" />
  return (
    <span className="flex min-w-28 items-center gap-2.5">
      <span
        aria-hidden="true"
        className="h-3 min-w-px rounded-sm"
        style={{ width: `${share * 60}%`, background: colour }}
      />
      {Math.round(share * 100)} %
    </span>
  )
}
