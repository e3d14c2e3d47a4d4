import { formatOffset } from '../../../lib/format-quantity'

export const axisHeight = 26

/** Round times, with a line for each. 0 is the boot's first packet. */
export function Axis({
  ticks,
  height,
  widthPx,
}: {
  ticks: { us: number; x: number }[]
  height: number
  widthPx: number
}) {
  return (
    <g>
      {ticks.map(({ us, x }) => (
        <g key={us}>
          <line
            x1={x}
            x2={x}
            y1={axisHeight - 6}
            y2={height}
            stroke={us === 0 && x > 0 ? 'var(--ink-faint)' : 'var(--line)'}
          />
          {x < widthPx - 24 && (
            <text x={x} y={10} className="fill-ink-faint text-2xs" textAnchor={x === 0 ? 'start' : 'middle'}>
              {us === 0 ? '0' : formatTick(us)}
            </text>
          )}
        </g>
      ))}
    </g>
  )
}

/** Ticks are round, so that no zeros after the point are needed. */
function formatTick(us: number): string {
  if (us < 0) return `−${formatTick(-us)}`
  if (us >= 1_000_000) return `${us / 1_000_000}\u00a0s`
  return us >= 1000 ? `${us / 1000}\u00a0ms` : `${us}\u00a0µs`
}

/** Under the pointer: which time that is. */
export function ReadingLine({ x, us, height, widthPx }: { x: number; us: number; height: number; widthPx: number }) {
  const textX = Math.min(Math.max(x, 34), widthPx - 34)
  return (
    <g className="pointer-events-none">
      <line x1={x} x2={x} y1={axisHeight - 6} y2={height} stroke="var(--ink-faint)" strokeDasharray="3 3" />
      <rect x={textX - 34} y={0} width={68} height={16} rx={4} fill="var(--ink)" />
      <text x={textX} y={8} dominantBaseline="central" textAnchor="middle" className="fill-canvas font-medium text-2xs">
        {formatOffset(us)}
      </text>
    </g>
  )
}
