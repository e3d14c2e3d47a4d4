import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { formatDuration } from '../../../lib/format-quantity'
import { phaseColour } from '../phase-colour'
import { labelSide, type WaterfallBar } from './waterfall-layout'

export const rowHeight = 32
const barHeight = 16
const labelWidth = 68

/** A phase's bar with its silences and its length. */
export function Bar({ bar, hatchId, widthPx }: { bar: WaterfallBar; hatchId: string; widthPx: number }) {
  const y = (rowHeight - barHeight) / 2
  if (bar.name === 'ready') return <ReadyMark bar={bar} />
  const rounding = Math.min(3, bar.width / 2)
  return (
    <g>
      <title>{`${bootPhaseText(bar.name).title}: ${bootPhaseText(bar.name).begins} → ${bootPhaseText(bar.name).ends}`}</title>
      <rect x={bar.x} y={y} width={bar.width} height={barHeight} rx={rounding} fill={phaseColour(bar.name)} />
      {bar.name === 'breather' && (
        <rect x={bar.x} y={y} width={bar.width} height={barHeight} rx={rounding} fill={`url(#${hatchId})`} />
      )}
      {bar.gaps.map((gap) => (
        <g key={gap.atUs}>
          <title>{`Idle gap of ${formatDuration(gap.durationUs)}`}</title>
          <rect x={gap.x} y={y} width={gap.width} height={barHeight} fill={`url(#${hatchId})`} />
        </g>
      ))}
      {bar.open && (
        <rect
          x={bar.x + bar.width - 2}
          y={y - 3}
          width={2}
          height={barHeight + 6}
          rx={1}
          fill="var(--live)"
          className="animate-[live-dot_1.4s_ease-in-out_infinite]"
        />
      )}
      <BarLabel bar={bar} widthPx={widthPx} />
    </g>
  )
}

function BarLabel({ bar, widthPx }: { bar: WaterfallBar; widthPx: number }) {
  const side = labelSide(bar, labelWidth, widthPx)
  const place = {
    after: { x: bar.x + bar.width + 8, anchor: 'start' },
    before: { x: bar.x - 8, anchor: 'end' },
    inside: { x: bar.x + bar.width - 8, anchor: 'end' },
  } as const
  return (
    <text
      x={place[side].x}
      y={rowHeight / 2}
      dominantBaseline="central"
      textAnchor={place[side].anchor}
      className="font-medium text-xs"
      fill={side === 'inside' ? 'oklch(0.16 0.02 268)' : 'var(--ink-soft)'}
    >
      {formatDuration(bar.endUs - bar.startUs)}
    </text>
  )
}

/** An instant, not a span. */
function ReadyMark({ bar }: { bar: WaterfallBar }) {
  const x = bar.x + bar.width / 2
  const y = rowHeight / 2
  return (
    <g>
      <path d={`M${x} ${y - 7}l7 7-7 7-7-7z`} fill={phaseColour('ready')} />
      <text x={x - 14} y={y} dominantBaseline="central" textAnchor="end" className="fill-ink-soft font-medium text-xs">
        {formatDuration(bar.startUs)}
      </text>
    </g>
  )
}

/** Leads from the end of a phase to the next row. */
export function Step({ x }: { x: number }) {
  return (
    <line
      x1={x - 0.5}
      x2={x - 0.5}
      y1={(rowHeight + barHeight) / 2}
      y2={rowHeight + (rowHeight - barHeight) / 2}
      stroke="var(--line-strong)"
    />
  )
}

/** Silence: nothing was on the wire. */
export function Hatch({ id }: { id: string }) {
  return (
    <defs>
      <pattern id={id} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="6" height="6" fill="var(--surface)" fillOpacity="0.35" />
        <line x1="0" y1="0" x2="0" y2="6" stroke="var(--surface)" strokeOpacity="0.9" strokeWidth="5" />
      </pattern>
    </defs>
  )
}
