import { formatBytes, formatCount } from '../../lib/format-quantity'
import type { BootPhaseView } from './boot-types'

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
