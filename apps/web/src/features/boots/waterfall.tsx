'use client'

import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { type PointerEvent, useId, useState } from 'react'
import { formatDuration } from '../../lib/format-quantity'
import { useElementWidth } from '../../lib/use-element-width'
import { phaseColour } from './phase-colour'
import { labelSide, layOutWaterfall, type WaterfallBar, type WaterfallPhase } from './waterfall-layout'

const rowHeight = 32
const barHeight = 16
const axisHeight = 26
const widthBeforeMeasure = 800
const labelWidth = 68

interface WaterfallProps {
  phases: WaterfallPhase[]
  running: boolean
  elapsedUs: number
}

/** The boot's phases on one axis of time. A picture: the table of phases has the same in numbers. */
export function Waterfall({ phases, running, elapsedUs }: WaterfallProps) {
  const [frame, frameWidth] = useElementWidth<HTMLDivElement>(widthBeforeMeasure)
  const [pointerX, setPointerX] = useState<number | null>(null)
  const hatchId = useId()
  const gutter = frameWidth < 560 ? 92 : 116
  const widthPx = Math.max(1, frameWidth - gutter)
  const { totalUs, bars, ticks } = layOutWaterfall({ phases, running, elapsedUs, widthPx })
  const height = axisHeight + bars.length * rowHeight
  const pointerUs = pointerX === null ? null : (pointerX / widthPx) * totalUs

  function follow(event: PointerEvent<SVGSVGElement>) {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - gutter
    setPointerX(x >= 0 && x <= widthPx ? x : null)
  }

  return (
    <div ref={frame}>
      <svg
        role="img"
        aria-label={summaryOf(bars, running, totalUs)}
        width={frameWidth}
        height={height}
        className="block select-none overflow-visible"
        onPointerMove={follow}
        onPointerLeave={() => setPointerX(null)}
      >
        <Hatch id={hatchId} />
        <g transform={`translate(${gutter} 0)`}>
          <Axis ticks={ticks} height={height} widthPx={widthPx} />
        </g>
        {bars.map((bar, index) => (
          <g key={bar.name} transform={`translate(0 ${axisHeight + index * rowHeight})`}>
            <text x={0} y={rowHeight / 2} dominantBaseline="central" className="fill-ink text-xs">
              {bootPhaseText(bar.name).title}
            </text>
            <g transform={`translate(${gutter} 0)`}>
              <Bar bar={bar} hatchId={hatchId} widthPx={widthPx} />
              {index < bars.length - 1 && <Step x={bar.x + bar.width} />}
            </g>
          </g>
        ))}
        {pointerX !== null && pointerUs !== null && (
          <g transform={`translate(${gutter} 0)`}>
            <ReadingLine x={pointerX} us={pointerUs} height={height} widthPx={widthPx} />
          </g>
        )}
      </svg>
    </div>
  )
}

function summaryOf(bars: WaterfallBar[], running: boolean, totalUs: number): string {
  const parts = bars.map(
    (bar) =>
      `${bootPhaseText(bar.name).title} ${formatDuration(bar.endUs - bar.startUs)}${bar.open ? ', going on' : ''}`,
  )
  return `Waterfall of ${formatDuration(totalUs)}${running ? ' so far' : ''}: ${parts.join('; ')}`
}

/** Silence: nothing was on the wire. */
function Hatch({ id }: { id: string }) {
  return (
    <defs>
      <pattern id={id} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="6" height="6" fill="var(--surface)" fillOpacity="0.35" />
        <line x1="0" y1="0" x2="0" y2="6" stroke="var(--surface)" strokeOpacity="0.9" strokeWidth="5" />
      </pattern>
    </defs>
  )
}

function Axis({
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
          <line x1={x} x2={x} y1={axisHeight - 6} y2={height} stroke="var(--line)" />
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
  if (us >= 1_000_000) return `${us / 1_000_000}\u00a0s`
  return us >= 1000 ? `${us / 1000}\u00a0ms` : `${us}\u00a0µs`
}

function Bar({ bar, hatchId, widthPx }: { bar: WaterfallBar; hatchId: string; widthPx: number }) {
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
          <title>{`Silence of ${formatDuration(gap.durationUs)}`}</title>
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
      <text
        x={x - 14}
        y={y}
        dominantBaseline="central"
        textAnchor="end"
        className="fill-ink-soft font-medium text-xs"
      >
        {formatDuration(bar.startUs)}
      </text>
    </g>
  )
}

/** Leads from the end of a phase to the next row. */
function Step({ x }: { x: number }) {
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

function ReadingLine({ x, us, height, widthPx }: { x: number; us: number; height: number; widthPx: number }) {
  const textX = Math.min(Math.max(x, 34), widthPx - 34)
  return (
    <g className="pointer-events-none">
      <line x1={x} x2={x} y1={axisHeight - 6} y2={height} stroke="var(--ink-faint)" strokeDasharray="3 3" />
      <rect x={textX - 34} y={0} width={68} height={16} rx={4} fill="var(--ink)" />
      <text
        x={textX}
        y={8}
        dominantBaseline="central"
        textAnchor="middle"
        className="fill-canvas font-medium text-2xs"
      >
        {formatDuration(us)}
      </text>
    </g>
  )
}
