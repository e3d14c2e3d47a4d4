'use client'

import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { type PointerEvent, useId, useState } from 'react'
import { countOf, formatDuration, formatOffset } from '../../../lib/format-quantity'
import { useElementWidth } from '../../../lib/use-element-width'
import { phaseColour } from '../phase-colour'
import { pointAt, type Series } from './series-layout'
import { SeriesRows, SeriesSlider, seriesRowsHeight } from './series-rows'
import {
  labelSide,
  layOutWaterfall,
  type WaterfallBar,
  type WaterfallLayout,
  type WaterfallPhase,
  type WaterfallStep,
} from './waterfall-layout'
import { StepRows, stepRowsHeight } from './waterfall-steps'

const widthBeforeMeasure = 800
const narrowBelow = 480
/** Average width of a letter of a phase's name, in px at 12 px. */
const letterWidth = 6.2

/** A span of time, in µs since the start of the boot. */
export interface Span {
  fromUs: number
  toUs: number
}

interface WaterfallProps {
  phases: WaterfallPhase[]
  /** The device's own report, on the same axis. */
  steps?: readonly WaterfallStep[]
  running: boolean
  elapsedUs: number
  /** How long each phase usually takes, drawn behind it. */
  usual?: Parameters<typeof layOutWaterfall>[0]['usual'] | undefined
  /** What the edge sent over time, below the phases. */
  series?: Series | null | undefined
  /** Called with the time of the phase that the pointer or the focus is on, and null when it leaves. */
  onMark?: ((span: Span | null) => void) | undefined
}

/** The boot's phases on one axis of time. A picture: the tables below it have the same in numbers. */
export function Waterfall({ phases, steps = [], running, elapsedUs, usual = [], series, onMark }: WaterfallProps) {
  const [frame, frameWidth] = useElementWidth<HTMLDivElement>(widthBeforeMeasure)
  const [pointerX, setPointerX] = useState<number | null>(null)
  const hatchId = useId()
  const narrow = frameWidth < narrowBelow
  const gutter = gutterOf(frameWidth)
  const widthPx = Math.max(1, frameWidth - gutter)
  const layout = layOutWaterfall({ phases, steps, running, elapsedUs, widthPx, usual })
  const { bars, axis } = layout
  const stepsTop = axisHeight + bars.length * rowHeight
  const seriesTop = stepsTop + stepRowsHeight(layout.steps, narrow)
  const height = seriesTop + (series ? seriesRowsHeight(series) : 0)
  const pointerUs = pointerX === null ? null : axis.fromUs + (pointerX / widthPx) * (axis.toUs - axis.fromUs)

  const point = series && pointerUs !== null ? pointAt(series, pointerUs) : null
  const pointTo = (us: number) => setPointerX(placeOf(us, axis, widthPx))

  function follow(event: PointerEvent<SVGSVGElement>) {
    const frameBox = event.currentTarget.getBoundingClientRect()
    const x = event.clientX - frameBox.left - gutter
    setPointerX(x >= 0 && x <= widthPx ? x : null)
    const bar = bars[Math.floor((event.clientY - frameBox.top - axisHeight) / rowHeight)]
    onMark?.(bar ? spanOf(bar) : null)
  }
  function leave() {
    setPointerX(null)
    onMark?.(null)
  }

  return (
    <div ref={frame} className="relative">
      <svg
        role="img"
        aria-label={summaryOf(layout, running)}
        width="100%"
        height={height}
        className="block select-none overflow-visible"
        onPointerMove={follow}
        onPointerLeave={leave}
      >
        <Hatch id={hatchId} />
        <g transform={`translate(${gutter} 0)`}>
          <Axis ticks={layout.ticks} height={height} widthPx={widthPx} />
        </g>
        <PhaseRows bars={bars} hatchId={hatchId} gutter={gutter} widthPx={widthPx} />
        <StepRows steps={layout.steps} y={stepsTop} gutter={gutter} widthPx={widthPx} narrow={narrow} />
        {series && (
          <SeriesRows series={series} axis={axis} point={point} y={seriesTop} gutter={gutter} widthPx={widthPx} />
        )}
        {pointerX !== null && pointerUs !== null && (
          <g transform={`translate(${gutter} 0)`}>
            <ReadingLine x={pointerX} us={pointerUs} height={height} widthPx={widthPx} />
          </g>
        )}
      </svg>
      {onMark && <PhaseButtons bars={bars} width={gutter - 6} onMark={onMark} />}
      {series && <SeriesSlider series={series} point={point} gutter={gutter} onPoint={pointTo} />}
    </div>
  )
}

function placeOf(us: number, { fromUs, toUs }: Span, widthPx: number): number {
  return Math.min(widthPx, ((us - fromUs) / (toUs - fromUs)) * widthPx)
}

interface PhaseRowsProps {
  bars: WaterfallBar[]
  hatchId: string
  gutter: number
  widthPx: number
}

function PhaseRows({ bars, hatchId, gutter, widthPx }: PhaseRowsProps) {
  return bars.map((bar, index) => (
    <g key={bar.name} transform={`translate(0 ${axisHeight + index * rowHeight})`}>
      <PhaseTitle title={bootPhaseText(bar.name).title} gutter={gutter} />
      <g transform={`translate(${gutter} 0)`}>
        <Bar bar={bar} hatchId={hatchId} widthPx={widthPx} />
        {index < bars.length - 1 && <Step x={bar.x + bar.width} />}
      </g>
    </g>
  ))
}

/** Returns the width of the column of names left of the bars. */
function gutterOf(frameWidth: number): number {
  if (frameWidth < narrowBelow) return 116
  return frameWidth < 720 ? 150 : 190
}

/** A phase's name, on two lines where the column is too narrow for one. */
function PhaseTitle({ title, gutter }: { title: string; gutter: number }) {
  const middle = rowHeight / 2
  const breakAt = title.length * letterWidth > gutter ? title.indexOf(' ', title.length / 3) : -1
  if (breakAt < 0)
    return (
      <text x={0} y={middle} dominantBaseline="central" className="fill-ink text-xs">
        {title}
      </text>
    )
  return (
    <text x={0} y={middle} dominantBaseline="central" className="fill-ink text-2xs">
      <tspan x={0} dy={-6}>
        {title.slice(0, breakAt)}
      </tspan>
      <tspan x={0} dy={13}>
        {title.slice(breakAt + 1)}
      </tspan>
    </text>
  )
}

function spanOf(bar: WaterfallBar): Span {
  return { fromUs: bar.startUs, toUs: bar.endUs }
}

function summaryOf({ bars, steps, totalUs }: WaterfallLayout, running: boolean): string {
  const parts = bars.map(
    (bar) =>
      `${bootPhaseText(bar.name).title} ${formatDuration(bar.endUs - bar.startUs)}${bar.open ? ', in progress' : ''}`,
  )
  const reported = steps.length > 0 ? `; ${countOf(steps.length, 'OS boot step')} reported by the device` : ''
  return `Waterfall of ${formatDuration(totalUs)}${running ? ' so far' : ''}: ${parts.join('; ')}${reported}`
}

/** Over the names of the phases, for keyboards and fingers: elements inside a picture cannot be reached. */
function PhaseButtons({
  bars,
  width,
  onMark,
}: {
  bars: WaterfallBar[]
  width: number
  onMark: (span: Span | null) => void
}) {
  return bars.map((bar, index) => (
    <button
      key={bar.name}
      type="button"
      aria-label={`${bootPhaseText(bar.name).title}: highlight its console lines`}
      onFocus={() => onMark(spanOf(bar))}
      onPointerEnter={() => onMark(spanOf(bar))}
      onBlur={() => onMark(null)}
      className="absolute left-0 rounded hover:bg-hover/40"
      style={{ top: axisHeight + index * rowHeight + 2, width, height: rowHeight - 4 }}
    />
  ))
}

const axisHeight = 26

/** Round times, with a line for each. 0 is the boot's first packet. */
function Axis({ ticks, height, widthPx }: { ticks: { us: number; x: number }[]; height: number; widthPx: number }) {
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
function ReadingLine({ x, us, height, widthPx }: { x: number; us: number; height: number; widthPx: number }) {
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

const rowHeight = 32
const barHeight = 16
const ghostHeight = 24
const labelWidth = 68

/** A phase's bar with its silences and its length. */
function Bar({ bar, hatchId, widthPx }: { bar: WaterfallBar; hatchId: string; widthPx: number }) {
  const y = (rowHeight - barHeight) / 2
  if (bar.name === 'ready') return <ReadyMark bar={bar} />
  const rounding = Math.min(3, bar.width / 2)
  return (
    <g>
      <title>{`${bootPhaseText(bar.name).title}: ${bootPhaseText(bar.name).begins} → ${bootPhaseText(bar.name).ends}`}</title>
      {bar.usual && <GhostBar usual={bar.usual} />}
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

/** From where the phase ends in one of ten boots to where it has ended in nine of ten. */
function GhostBar({ usual }: { usual: NonNullable<WaterfallBar['usual']> }) {
  return (
    <g>
      <title>{`Usually ${formatDuration(usual.p10Us)} to ${formatDuration(usual.p90Us)}`}</title>
      <rect
        x={usual.x}
        y={(rowHeight - ghostHeight) / 2}
        width={usual.width}
        height={ghostHeight}
        rx={Math.min(3, usual.width / 2)}
        fill="var(--ink-faint)"
        fillOpacity={0.22}
        stroke="var(--ink-faint)"
        strokeOpacity={0.5}
      />
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
