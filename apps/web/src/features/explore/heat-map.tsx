'use client'

import { memo, useId } from 'react'
import { formatDuration } from '../../lib/format-quantity'
import { formatAxisTime } from '../../lib/format-time'
import { useElementWidth } from '../../lib/use-element-width'
import { countText } from './count-text'
import { type CellRange, cellPaths, type Exploration, labelEvery, levelBounds, timeLabels } from './heat-layout'
import { PromotionLines } from './promotions'
import { type HeatMapProps, useHeatCursor } from './use-heat-cursor'

const widthBeforeMeasure = 900
const heightPx = 280
const axisPx = 68
const labelPx = 80
const rowLabelPx = 22

/**
 * Boots by start and duration. A drag chooses a box. For the keyboard and for screen readers it is one slider over all
 * cells, whose value is a cell in words; the table has the same as rows.
 */
export function HeatMap(props: HeatMapProps) {
  const { exploration } = props
  const [frame, width] = useElementWidth<HTMLDivElement>(widthBeforeMeasure)
  const hintId = useId()
  const { columns, rows, cell, active, chosen, text, isIdle, handlers } = useHeatCursor(props)
  return (
    <div className="flex flex-col gap-2">
      <p aria-hidden="true" className="min-h-4.5 text-ink-soft text-xs">
        {isIdle ? 'Drag a box over boots to see what they have more often than the others.' : text}
      </p>
      <div ref={frame} className="relative" style={{ height: heightPx + 22, paddingLeft: axisPx, paddingBottom: 22 }}>
        <DurationAxis edges={exploration.durationEdgesUs} />
        <div
          role="slider"
          tabIndex={0}
          aria-label="Boots by start and duration"
          aria-describedby={hintId}
          aria-valuemin={1}
          aria-valuemax={columns * rows}
          aria-valuenow={cell.step * rows + cell.bin + 1}
          aria-valuetext={text}
          className="relative h-full cursor-crosshair touch-pan-y overflow-hidden rounded-sm border border-line bg-sunken"
          {...handlers}
        >
          <Cells exploration={exploration} />
          <svg
            aria-hidden="true"
            viewBox={`0 0 ${columns} ${rows}`}
            preserveAspectRatio="none"
            className="pointer-events-none absolute inset-0 size-full"
          >
            {chosen && <Outline range={chosen} rows={rows} look="box" />}
            {active && <Outline range={{ from: active, until: active }} rows={rows} look="cell" />}
          </svg>
          <PromotionLines {...exploration} />
        </div>
        <TimeAxis exploration={exploration} width={width - axisPx} />
      </div>
      <p id={hintId} className="sr-only">
        Arrow keys move between cells, with Shift they stretch a box. Enter chooses the box, Escape clears it.
      </p>
      <Shades exploration={exploration} />
    </div>
  )
}

const Cells = memo(function Cells({ exploration }: { exploration: Exploration }) {
  const { steps, durationEdgesUs } = exploration
  return (
    <svg
      aria-hidden="true"
      viewBox={`0 0 ${steps.length} ${durationEdgesUs.length}`}
      preserveAspectRatio="none"
      shapeRendering="crispEdges"
      className="absolute inset-0 size-full"
    >
      {cellPaths(exploration).map(({ level, path }) => (
        <path key={level} d={path} style={{ fill: `var(--heat-${level})` }} />
      ))}
    </svg>
  )
})

function Outline({ range: { from, until }, rows, look }: { range: CellRange; rows: number; look: 'box' | 'cell' }) {
  return (
    <rect
      x={from.step}
      y={rows - 1 - until.bin}
      width={until.step - from.step + 1}
      height={until.bin - from.bin + 1}
      vectorEffect="non-scaling-stroke"
      className={look === 'box' ? 'fill-focus/15 stroke-focus' : 'fill-none stroke-ink'}
      strokeWidth={look === 'box' ? 2 : 1.5}
    />
  )
}

function DurationAxis({ edges }: { edges: number[] }) {
  const every = labelEvery(edges.length, heightPx / rowLabelPx)
  return (
    <div
      aria-hidden="true"
      className="absolute top-0 left-0 text-right text-2xs text-ink-faint"
      style={{ width: axisPx - 8, height: heightPx }}
    >
      {edges.map((us, bin) =>
        bin % every === 0 ? (
          <span
            key={us}
            className="absolute right-0 translate-y-1/2"
            style={{ bottom: `${(bin / edges.length) * 100}%` }}
          >
            {us === 0 ? '0' : formatDuration(us).replace(/\.0+(?=\u00a0)/, '')}
          </span>
        ) : null,
      )}
    </div>
  )
}

function TimeAxis({ exploration, width }: { exploration: Exploration; width: number }) {
  const { steps } = exploration
  const { hasDaysAlone, indexes } = timeLabels(exploration, width / labelPx)
  return (
    <div aria-hidden="true" className="absolute right-0 bottom-0 h-5 text-2xs text-ink-faint" style={{ left: axisPx }}>
      {indexes.map((index) => (
        <span key={index} className="absolute whitespace-nowrap" style={{ left: `${(index / steps.length) * 100}%` }}>
          {formatAxisTime(new Date(steps[index]?.at ?? ''), hasDaysAlone)}
        </span>
      ))}
    </div>
  )
}

function Shades({ exploration }: { exploration: Exploration }) {
  const { cells, sample } = exploration
  const most = cells.counts.reduce((largest, count) => Math.max(largest, count), 0)
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-ink-faint text-xs">
      <span>Boots in a cell, from</span>
      {levelBounds(most).map(({ level, from }) => (
        <span key={level} className="inline-flex items-center gap-1.5">
          <span
            aria-hidden="true"
            className="size-3 rounded-xs border border-line"
            style={{ background: `var(--heat-${level})` }}
          />
          {countText(from, sample.share)}
        </span>
      ))}
    </p>
  )
}
