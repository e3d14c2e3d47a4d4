'use client'

import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { type PointerEvent, useId, useState } from 'react'
import { countOf, formatDuration } from '../../../lib/format-quantity'
import { useElementWidth } from '../../../lib/use-element-width'
import { Axis, axisHeight, ReadingLine } from './waterfall-axis'
import { Bar, Hatch, rowHeight, Step } from './waterfall-bars'
import {
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

/** A span of time, in µs since the boot's begin. */
export interface Span {
  fromUs: number
  toUs: number
}

interface WaterfallProps {
  phases: WaterfallPhase[]
  /** What the device reported of itself, on the same axis. */
  steps?: readonly WaterfallStep[]
  running: boolean
  elapsedUs: number
  /** Called with the time of the phase that the pointer or the focus is on, and null when it leaves. */
  onMark?: ((span: Span | null) => void) | undefined
}

/** The boot's phases on one axis of time. A picture: the tables below it have the same in numbers. */
export function Waterfall({ phases, steps = [], running, elapsedUs, onMark }: WaterfallProps) {
  const [frame, frameWidth] = useElementWidth<HTMLDivElement>(widthBeforeMeasure)
  const [pointerX, setPointerX] = useState<number | null>(null)
  const hatchId = useId()
  const narrow = frameWidth < narrowBelow
  const gutter = gutterOf(frameWidth)
  const widthPx = Math.max(1, frameWidth - gutter)
  const layout = layOutWaterfall({ phases, steps, running, elapsedUs, widthPx })
  const { bars, axis } = layout
  const stepsTop = axisHeight + bars.length * rowHeight
  const height = stepsTop + stepRowsHeight(layout.steps, narrow)
  const pointerUs = pointerX === null ? null : axis.fromUs + (pointerX / widthPx) * (axis.toUs - axis.fromUs)

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
        {bars.map((bar, index) => (
          <g key={bar.name} transform={`translate(0 ${axisHeight + index * rowHeight})`}>
            <PhaseTitle title={bootPhaseText(bar.name).title} gutter={gutter} />
            <g transform={`translate(${gutter} 0)`}>
              <Bar bar={bar} hatchId={hatchId} widthPx={widthPx} />
              {index < bars.length - 1 && <Step x={bar.x + bar.width} />}
            </g>
          </g>
        ))}
        <StepRows steps={layout.steps} y={stepsTop} gutter={gutter} widthPx={widthPx} narrow={narrow} />
        {pointerX !== null && pointerUs !== null && (
          <g transform={`translate(${gutter} 0)`}>
            <ReadingLine x={pointerX} us={pointerUs} height={height} widthPx={widthPx} />
          </g>
        )}
      </svg>
      {onMark && <PhaseButtons bars={bars} width={gutter - 6} onMark={onMark} />}
    </div>
  )
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

/** Over the names of the phases, for keyboards and fingers: what lies inside a picture cannot be reached. */
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
