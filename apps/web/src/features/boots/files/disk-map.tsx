import { formatBytes } from '../../../lib/format-quantity'
import { type DiskCell, diskCells, type FilesRead } from './files-read'

const columns = 64
const cells = 256

/** The disk from its start to its end, in rows: what was read, and when for the first time. */
export function DiskMap({ read }: { read: FilesRead }) {
  const shown = diskCells(read)
  return (
    <figure className="px-4 py-3">
      <svg
        viewBox={`0 0 ${columns * 10} ${(cells / columns) * 10}`}
        role="img"
        aria-label={`Map of the disk: ${shown.length} of ${cells} parts were read`}
        className="w-full"
      >
        <rect width={columns * 10} height={(cells / columns) * 10} className="fill-sunken" />
        {shown.map((cell) => (
          <Cell key={cell.index} cell={cell} />
        ))}
      </svg>
      <figcaption className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-1 text-ink-faint text-xs">
        <span>
          The disk of {formatBytes(read.diskBytes)}, row by row. Each part has {formatBytes(read.cellBytes)}; a fuller
          one was read more.
        </span>
        <span className="flex items-center gap-2">
          read first
          <span aria-hidden="true" className="h-2 w-20 rounded-sm" style={{ background: gradient }} />
          read last
        </span>
      </figcaption>
    </figure>
  )
}

const gradient = 'linear-gradient(to right in oklab, var(--live), var(--silent))'

function Cell({ cell: { index, share, when, text } }: { cell: DiskCell }) {
  const height = 2 + 6 * share
  return (
    <g>
      <title>{text}</title>
      <rect
        x={(index % columns) * 10 + 1}
        y={Math.floor(index / columns) * 10 + 9 - height}
        width={8}
        height={height}
        style={{ fill: `color-mix(in oklab, var(--silent) ${Math.round(when * 100)}%, var(--live))` }}
      />
    </g>
  )
}
