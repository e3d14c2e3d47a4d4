import { classNames } from '../../lib/class-names'
import type { RunDevice } from './schedule-types'

const colours: Record<RunDevice['state'], string> = {
  waiting: 'fill-line-strong',
  sent: 'fill-live',
  booting: 'fill-live',
  ready: 'fill-ready',
  failed: 'fill-failed',
  not_seen: 'fill-silent',
  skipped: 'fill-line-strong',
}

const rowHeight = 6
const rowsMax = 60
const width = 1000

/**
 * When each device was switched on and how long its boot took, one line for each, on one axis; the table says the same
 * in words.
 */
export function RunTimeline({ startedAt, devices }: { startedAt: string; devices: RunDevice[] }) {
  const begin = new Date(startedAt).getTime()
  const lines = devices.slice(0, rowsMax).flatMap(({ deviceId, state, sentAt, boot }) => {
    if (!sentAt) return []
    const from = Math.max(0, new Date(sentAt).getTime() - begin)
    const until = boot ? new Date(boot.startedAt).getTime() - begin + boot.totalUs / 1000 : from
    return [{ deviceId, state, from, until: Math.max(from, until) }]
  })
  if (lines.length === 0) return null
  const span = Math.max(1000, ...lines.map(({ until }) => until))
  const x = (ms: number) => (ms / span) * width
  const height = lines.length * rowHeight
  return (
    <figure className="flex flex-col gap-1.5">
      <svg
        role="img"
        aria-label={`${lines.length} devices in ${seconds(span)}`}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        className="w-full"
        style={{ height: Math.max(24, height) }}
      >
        {lines.map(({ deviceId, state, from, until }, index) => (
          <rect
            key={deviceId}
            x={x(from)}
            y={index * rowHeight + 1}
            width={Math.max(3, x(until - from))}
            height={rowHeight - 2}
            className={classNames(colours[state])}
          />
        ))}
      </svg>
      <figcaption className="flex justify-between text-2xs text-ink-faint tabular-nums">
        <span>0</span>
        <span>{seconds(span / 2)}</span>
        <span>{seconds(span)}</span>
      </figcaption>
    </figure>
  )
}

function seconds(ms: number): string {
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`
}
