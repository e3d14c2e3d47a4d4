'use client'

import { type KeyboardEvent, useState } from 'react'
import 'uplot/dist/uPlot.min.css'
import { formatInstant } from '../../lib/format-time'
import { Button } from '../button'
import { Table } from '../table'
import { type ChartUnit, formatChartValue } from './chart-units'
import { type ChartSeries, useTimePlot, type Zoom } from './use-time-plot'

export interface TimeChartData {
  title: string
  /** What is measured, where the title does not say it. */
  hint?: string
  unit: ChartUnit
  /** Seconds since 1970, ascending. */
  at: number[]
  series: ChartSeries[]
  /** Seconds since 1970: a dashed line each; the page says what they are. */
  marks?: number[]
}

interface TimeChartProps {
  chart: TimeChartData
  /** Charts of the same key move their cursors together. */
  syncKey: string
  /** Another part of time was chosen; null: the whole again. */
  onZoom: (zoom: Zoom | null) => void
}

const noMarks: number[] = []

/**
 * Lines over time. The pointer or the arrow keys show the values of an instant; a drag, or `+` and `-`, choose a part
 * of the time; a table has the same numbers.
 */
export function TimeChart({ chart, syncKey, onZoom }: TimeChartProps) {
  const { title, hint, unit, at, series, marks = noMarks } = chart
  const [isTable, setIsTable] = useState(false)
  const [chosen, setChosen] = useState<number | null>(null)
  const { frame, hasFailed, show } = useTimePlot({ unit, at, series, marks, syncKey, onCursor: setChosen, onZoom })
  const index = Math.min(chosen ?? lastKnown(series), at.length - 1)
  const hasTable = isTable || hasFailed
  return (
    <figure aria-label={title} className="flex min-w-0 flex-col gap-1.5">
      <figcaption className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <h3 className="font-medium text-ink text-sm">{title}</h3>
          {hint && <p className="text-ink-faint text-xs">{hint}</p>}
        </div>
        <Button
          small
          look="bare"
          aria-label={`${title} as a table`}
          aria-pressed={hasTable}
          onClick={() => setIsTable(!isTable)}
        >
          Table
        </Button>
      </figcaption>
      {hasTable && <ChartTable chart={chart} />}
      <div className={hasTable ? 'hidden' : 'flex flex-col gap-1.5'}>
        <Reading chart={chart} index={index} />
        <div className="relative rounded-md has-focus-visible:outline-2 has-focus-visible:outline-focus">
          <div ref={frame} aria-hidden="true" className="min-h-42 overflow-hidden" />
          <input
            type="range"
            aria-label={`${title}: instant`}
            aria-valuetext={readingText(chart, index)}
            min={0}
            max={Math.max(0, at.length - 1)}
            value={Math.max(0, index)}
            onChange={(event) => show(Number(event.target.value))}
            onKeyDown={(event) => zoomByKey(event, { at, index, onZoom })}
            className="pointer-events-none absolute inset-x-0 bottom-0 h-px w-full opacity-0"
          />
        </div>
      </div>
    </figure>
  )
}

/** The newest instant of which something is known. */
function lastKnown(series: ChartSeries[]): number {
  return Math.max(...series.map(({ values }) => values.findLastIndex((value) => value !== null)))
}

interface ZoomKeys {
  at: number[]
  index: number
  onZoom: (zoom: Zoom | null) => void
}

function zoomByKey(event: KeyboardEvent, { at, index, onZoom }: ZoomKeys): void {
  const [first, last, middle] = [at[0], at.at(-1), at[index]]
  if (first === undefined || last === undefined || middle === undefined) return
  if (event.key === '0' || event.key === 'Escape') onZoom(null)
  // Half of the time, or twice as much, around the instant.
  const part = event.key === '+' || event.key === '=' ? 0.25 : event.key === '-' ? 1 : null
  if (part === null) return
  event.preventDefault()
  onZoom({ from: middle - (last - first) * part, until: middle + (last - first) * part })
}

function instantText(second: number | undefined): string {
  return second === undefined ? '' : formatInstant(new Date(second * 1000), new Date())
}

function readingText({ unit, at, series }: TimeChartData, index: number): string {
  const values = series.map(({ label, values }) => `${label} ${formatChartValue(unit, values[index] ?? null)}`)
  return `${instantText(at[index])}: ${values.join(', ')}`
}

/** The values of an instant, beside the look of their lines. */
function Reading({ chart: { unit, at, series }, index }: { chart: TimeChartData; index: number }) {
  return (
    <div aria-hidden="true" className="flex min-h-4.5 flex-wrap gap-x-4 gap-y-0.5 text-ink-soft text-xs">
      {series.map(({ label, colour, dashed, values }) => (
        <span key={label} className="flex items-center gap-1.5">
          <span
            className={`w-4 border-t-2 ${dashed ? 'border-dashed' : ''}`}
            style={{ borderColor: `var(--chart-${colour})` }}
          />
          {label}
          <b className="font-medium text-ink">{formatChartValue(unit, values[index] ?? null)}</b>
        </span>
      ))}
      <span className="ml-auto whitespace-nowrap text-ink-faint">{instantText(at[index])}</span>
    </div>
  )
}

function ChartTable({ chart: { title, unit, at, series } }: { chart: TimeChartData }) {
  const rows = at
    .map((second, index) => ({ second, index }))
    .filter(({ index }) => series.some(({ values }) => (values[index] ?? null) !== null))
    .reverse()
  return (
    <div className="max-h-52 overflow-y-auto rounded-md border border-line">
      <Table
        label={`${title}, as a table`}
        rows={rows}
        rowKey={({ second }) => String(second)}
        columns={[
          { title: 'Time', wide: true, cell: ({ second }) => instantText(second) },
          ...series.map(({ label, values }) => ({
            title: label,
            align: 'right' as const,
            cell: ({ index }: { index: number }) => formatChartValue(unit, values[index] ?? null),
          })),
        ]}
      />
    </div>
  )
}
