'use client'

import { type KeyboardEvent, memo, type PointerEvent, useId, useMemo, useRef, useState } from 'react'
import { formatDuration } from '../../lib/format-quantity'
import { formatAxisTime, formatInstant } from '../../lib/format-time'
import { useElementWidth } from '../../lib/use-element-width'
import { countText } from './count-text'
import type { Box } from './explore-inputs'
import {
  boxOfRange,
  type Cell,
  type CellRange,
  cellPaths,
  countIn,
  countsOf,
  type Exploration,
  labelEvery,
  levelBounds,
  rangeOf,
  rangeOfBox,
} from './heat-layout'

interface HeatMapProps {
  exploration: Exploration
  box: Box | null
  onBox: (box: Box | null) => void
}

const heightPx = 280
const axisPx = 68
const labelPx = 80
const rowLabelPx = 22
const daySpanMs = 86_400_000

/**
 * Boots by start and duration. A drag chooses a box. For the keyboard and for screen readers it is one slider over all
 * cells, whose value is a cell in words; the table has the same as rows.
 */
export function HeatMap({ exploration, box, onBox }: HeatMapProps) {
  const { steps, durationEdgesUs } = exploration
  const [frame, width] = useElementWidth<HTMLDivElement>(900)
  const hintId = useId()
  const [focused, setFocused] = useState<Cell>({ step: steps.length - 1, bin: 0 })
  const [anchor, setAnchor] = useState<Cell | null>(null)
  const [pointed, setPointed] = useState<Cell | null>(null)
  const [hasFocus, setHasFocus] = useState(false)
  const dragFrom = useRef<Cell | null>(null)
  const [dragged, setDragged] = useState<CellRange | null>(null)
  const countAt = useMemo(() => countsOf(exploration), [exploration])
  const [columns, rows] = [steps.length, durationEdgesUs.length]
  const cell = { step: Math.min(focused.step, columns - 1), bin: Math.min(focused.bin, rows - 1) }
  const active = pointed ?? (hasFocus ? cell : null)
  const chosen = dragged ?? (box && rangeOfBox(exploration, box))

  const cellAt = (event: PointerEvent<HTMLElement>): Cell => {
    const area = event.currentTarget.getBoundingClientRect()
    const column = Math.floor(((event.clientX - area.left) / area.width) * columns)
    const row = Math.floor(((event.clientY - area.top) / area.height) * rows)
    return {
      step: Math.max(0, Math.min(columns - 1, column)),
      bin: Math.max(0, Math.min(rows - 1, rows - 1 - row)),
    }
  }
  const onKey = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'Escape') {
      setAnchor(null)
      return onBox(null)
    }
    if (event.key === 'Enter') return onBox(boxOfRange(exploration, rangeOf(anchor ?? cell, cell)))
    const move = moves[event.key]
    if (!move) return
    event.preventDefault()
    const next = {
      step: Math.max(0, Math.min(columns - 1, cell.step + move.step)),
      bin: Math.max(0, Math.min(rows - 1, cell.bin + move.bin)),
    }
    const from = event.shiftKey ? (anchor ?? cell) : null
    setAnchor(from)
    setDragged(from && rangeOf(from, next))
    setPointed(null)
    setFocused(next)
  }
  const release = (event: PointerEvent<HTMLElement>) => {
    const from = dragFrom.current
    dragFrom.current = null
    setDragged(null)
    if (from) onBox(boxOfRange(exploration, rangeOf(from, cellAt(event))))
  }
  const onMove = (event: PointerEvent<HTMLElement>) => {
    const at = cellAt(event)
    setPointed(at)
    if (dragFrom.current) setDragged(rangeOf(dragFrom.current, at))
  }
  const text = dragged ? rangeText(exploration, dragged) : cellText(exploration, active ?? cell, countAt)
  return (
    <div className="flex flex-col gap-2">
      <p aria-hidden="true" className="min-h-4.5 text-ink-soft text-xs">
        {active || dragged ? text : 'Drag a box over boots to see what they have more often than the others.'}
      </p>
      <div ref={frame} className="relative" style={{ height: heightPx + 22, paddingLeft: axisPx, paddingBottom: 22 }}>
        <DurationAxis edges={durationEdgesUs} />
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
          onKeyDown={onKey}
          onFocus={() => setHasFocus(true)}
          onBlur={() => {
            setHasFocus(false)
            setAnchor(null)
            setDragged(null)
          }}
          onPointerDown={(event) => {
            if (event.button !== 0) return
            event.currentTarget.setPointerCapture(event.pointerId)
            dragFrom.current = cellAt(event)
          }}
          onPointerMove={onMove}
          onPointerUp={release}
          onPointerCancel={() => {
            dragFrom.current = null
            setDragged(null)
          }}
          onPointerLeave={() => setPointed(null)}
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
          <PromotionLines exploration={exploration} />
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

const moves: Record<string, Cell> = {
  ArrowLeft: { step: -1, bin: 0 },
  ArrowRight: { step: 1, bin: 0 },
  ArrowUp: { step: 0, bin: 1 },
  ArrowDown: { step: 0, bin: -1 },
  PageUp: { step: 0, bin: 5 },
  PageDown: { step: 0, bin: -5 },
  Home: { step: -1e6, bin: 0 },
  End: { step: 1e6, bin: 0 },
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

/** Where versions became the production version; the list below the map names them. */
function PromotionLines({ exploration: { promotions, steps, stepMs } }: { exploration: Exploration }) {
  const firstMs = Date.parse(steps[0]?.at ?? '')
  return promotions.map(({ at, versionId }) => (
    <span
      key={`${at} ${versionId}`}
      aria-hidden="true"
      className="pointer-events-none absolute inset-y-0 border-ink-soft border-l-2 border-dashed"
      style={{ left: `${((Date.parse(at) - firstMs) / (stepMs * steps.length)) * 100}%` }}
    />
  ))
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

function TimeAxis({ exploration: { steps, stepMs }, width }: { exploration: Exploration; width: number }) {
  const every = labelEvery(steps.length, width / labelPx)
  const hasDays = every * stepMs >= daySpanMs
  return (
    <div aria-hidden="true" className="absolute right-0 bottom-0 h-5 text-2xs text-ink-faint" style={{ left: axisPx }}>
      {steps.map(({ at }, index) =>
        index % every === 0 ? (
          <span key={at} className="absolute whitespace-nowrap" style={{ left: `${(index / steps.length) * 100}%` }}>
            {formatAxisTime(new Date(at), hasDays)}
          </span>
        ) : null,
      )}
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

/** `18 Nov 14:00 to 17:00, 30 s to 45 s: 12 boots`. */
function rangeText(exploration: Exploration, range: CellRange): string {
  return boxText(boxOfRange(exploration, range), countText(countIn(exploration, range), exploration.sample.share))
}

function cellText(exploration: Exploration, cell: Cell, countAt: (cell: Cell) => number): string {
  const box = boxOfRange(exploration, { from: cell, until: cell })
  return boxText(box, countText(countAt(cell), exploration.sample.share))
}

export function boxText({ sinceMs, untilMs, minUs, maxUs }: Box, count: string): string {
  const now = new Date()
  const time = `${formatInstant(new Date(sinceMs), now)} to ${formatInstant(new Date(untilMs), now)}`
  const duration =
    maxUs === null ? `${formatDuration(minUs)} or longer` : `${formatDuration(minUs)} to ${formatDuration(maxUs + 1)}`
  return `${time} · ${duration} · ${count} ${count === '1' ? 'boot' : 'boots'}`
}
