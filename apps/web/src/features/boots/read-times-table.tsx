import { Unknown } from '../../components/page'
import { type Column, GroupedTable } from '../../components/table'
import { countOf, formatBytes, formatCount, formatDuration } from '../../lib/format-quantity'
import type { BootPhaseView } from './boot-types'
import { type ReadTimes, type ReadTimesGroup, type ReadTimesRow, readTimesGroups } from './read-times-rows'

const columns: Column<ReadTimesRow>[] = [
  { title: 'Part', cell: ({ title, meaning }) => <span title={meaning}>{title}</span> },
  {
    title: 'Reads',
    align: 'right',
    cell: ({ times }) => (times ? formatCount(times.count) : <Unknown label="none" />),
  },
  { title: 'Mean', align: 'right', cell: ({ times }) => duration(times && times.sumUs / times.count) },
  { title: 'Median', align: 'right', cell: ({ times }) => duration(times?.medianUs) },
  {
    title: 'p95',
    meaning: '95 % of the reads took no longer',
    align: 'right',
    cell: ({ times }) => duration(times?.p95Us),
  },
  { title: 'Longest', align: 'right', cell: ({ times }) => duration(times?.maxUs) },
  { title: 'Total', align: 'right', cell: ({ times }) => duration(times?.sumUs) },
  { title: 'Share', cell: (row) => row.isPart && <Share share={row.share} colour={row.colour} /> },
]

/**
 * The parts of the time of the boot's reads, in each phase that its device distinguishes. @param running the boot is in
 * progress
 */
export function ReadTimesTable({ readTimes, running }: { readTimes: ReadTimes; running: boolean }) {
  return (
    <>
      <GroupedTable
        label="Disk read latency"
        columns={columns}
        groups={readTimesGroups(readTimes).map((group) => ({
          ...group,
          heading: <GroupHeading group={group} />,
        }))}
        rowKey={({ title }) => title}
      />
      <p className="border-line border-t px-4 py-3 text-ink-faint text-xs">
        Reads are counted as sent over the network. A large read of the operating system is split into several, and each
        one counts. Reads overlap, so the total can exceed the duration of the boot. The median and p95 are estimates.
        {readTimes.wire?.medianUs === null &&
          ' Of the network, only mean and total are known: they are what remains of the whole reads.'}
        {readTimes.phases.length === 0 &&
          (running
            ? ' The device has not reported yet that its operating system started.'
            : ' Only the whole boot is known. The device did not report when its operating system started.')}
      </p>
    </>
  )
}

function GroupHeading({ group: { title, meaning, reads, bytes, rows } }: { group: ReadTimesGroup }) {
  return (
    <span className="flex flex-wrap items-baseline gap-x-3">
      <span title={meaning}>{title}</span>{' '}
      <span className="font-normal text-ink-faint">
        {rows.length === 0 ? 'No reads in this phase.' : countOf(reads, 'read')}
        {rows.length > 0 && bytes !== null && `, ${formatBytes(bytes)}`}
      </span>
    </span>
  )
}

function duration(us: number | null | undefined) {
  return us === undefined || us === null ? <Unknown label="not measured" /> : formatDuration(us)
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

/** Reads by size over all phases: index i counts reads of (2^(i+8), 2^(i+9)] bytes. */
export function readSizeRows(phases: Pick<BootPhaseView, 'readSizes'>[]): { upToBytes: number; count: number }[] {
  const sizes = Math.max(0, ...phases.map(({ readSizes }) => readSizes.length))
  const rows = Array.from({ length: sizes }, (_, index) => ({
    upToBytes: 2 ** (index + 9),
    count: phases.reduce((sum, { readSizes }) => sum + (readSizes[index] ?? 0), 0),
  }))
  const first = rows.findIndex(({ count }) => count > 0)
  const last = rows.findLastIndex(({ count }) => count > 0)
  return first === -1 ? [] : rows.slice(first, last + 1)
}

export function ReadSizeHistogram({ rows }: { rows: { upToBytes: number; count: number }[] }) {
  const most = Math.max(1, ...rows.map(({ count }) => count))
  return (
    <table className="w-full text-sm">
      <caption className="sr-only">Reads by size</caption>
      <thead className="sr-only">
        <tr>
          <th scope="col">Read size (upper limit)</th>
          <th scope="col">Reads</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ upToBytes, count }) => (
          <tr key={upToBytes}>
            <th scope="row" className="w-px whitespace-nowrap py-1 pr-4 text-right font-normal text-ink-soft">
              {plainBytes(upToBytes)}
            </th>
            <td className="py-1">
              <span className="flex items-center gap-2.5">
                <span
                  aria-hidden="true"
                  className="h-3 min-w-px rounded-sm"
                  style={{ width: `${(count / most) * 78}%`, background: 'var(--phase-stage2)' }}
                />
                {formatCount(count)}
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Powers of two need no digits after the point. */
function plainBytes(bytes: number): string {
  return formatBytes(bytes).replace(/\.0+(?=\u00a0)/, '')
}
