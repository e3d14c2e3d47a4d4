'use client'

import { type PointerEvent, useState } from 'react'
import { formatCount, formatDuration } from '../../lib/format-quantity'
import { formatDay } from '../../lib/format-time'
import { useElementWidth } from '../../lib/use-element-width'
import { type DayColumn, type DayOfBoots, layOutDayChart, linePath } from './day-chart-layout'

const gutter = 44
const durationHeight = 120
const between = 14
const countHeight = 44
const dayLabelHeight = 22
const widthBeforeMeasure = 760
const height = durationHeight + between + countHeight + dayLabelHeight + 8

/** Median and 95th percentile of the ready boots per day, and below them how many were ready and failed. */
export function DayChart({ days }: { days: DayOfBoots[] }) {
  const [frame, frameWidth] = useElementWidth<HTMLDivElement>(widthBeforeMeasure)
  const [chosen, setChosen] = useState<number | null>(null)
  const widthPx = Math.max(1, frameWidth - gutter)
  const { columns, durationTicks } = layOutDayChart(days, { widthPx, durationHeight, countHeight })

  function follow(event: PointerEvent<SVGSVGElement>) {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - gutter
    setChosen(Math.min(days.length - 1, Math.max(0, Math.floor((x / widthPx) * days.length))))
  }

  return (
    <div>
      <Reading day={days[chosen ?? days.length - 1]} />
      <div ref={frame}>
        <svg
          aria-hidden="true"
          width="100%"
          height={height}
          className="block"
          onPointerMove={follow}
          onPointerLeave={() => setChosen(null)}
        >
          <g transform={`translate(${gutter} 8)`}>
            {durationTicks.map(({ us, y }) => (
              <g key={us}>
                <line x1={0} x2={widthPx} y1={y} y2={y} stroke="var(--line)" />
                <text x={-8} y={y} textAnchor="end" dominantBaseline="central" className="fill-ink-faint text-2xs">
                  {us === 0 ? '0' : `${us / 1_000_000}\u00a0s`}
                </text>
              </g>
            ))}
            <Lines columns={columns} />
            {columns.map((column, index) => (
              <CountColumn key={column.day.day} column={column} dimmed={chosen !== null && chosen !== index} />
            ))}
            <DayLabels columns={columns} />
            {chosen !== null && <ChosenDay column={columns[chosen]} />}
          </g>
        </svg>
      </div>
      <DayTable days={days} />
    </div>
  )
}

/** The chosen day in words, today's without one: it stands still while the pointer moves. */
function Reading({ day }: { day: DayOfBoots | undefined }) {
  if (!day) return null
  const duration = (us: number | null) => (us === null ? '–' : formatDuration(us))
  return (
    <div aria-hidden="true" className="mb-2 flex flex-wrap gap-x-5 gap-y-1 text-ink-soft text-xs">
      <span className="w-20 font-medium text-ink">{formatDay(day.day)}</span>
      <span className="flex items-center gap-1.5">
        <span className="h-0.5 w-3 bg-(--phase-stage2)" /> median{' '}
        <b className="font-medium text-ink">{duration(day.p50Us)}</b>
      </span>
      <span className="flex items-center gap-1.5">
        <span className="h-0.5 w-3 bg-(--phase-dhcp)" /> p95{' '}
        <b className="font-medium text-ink">{duration(day.p95Us)}</b>
      </span>
      <span className="flex items-center gap-1.5">
        <span className="size-2 rounded-sm bg-(--phase-ready)" /> ready{' '}
        <b className="font-medium text-ink">{formatCount(day.readyCount)}</b>
      </span>
      <span className="flex items-center gap-1.5">
        <span className="size-2 rounded-sm bg-failed" /> failed or timed out{' '}
        <b className="font-medium text-ink">{formatCount(day.failedCount)}</b>
      </span>
    </div>
  )
}

function Lines({ columns }: { columns: DayColumn[] }) {
  return (
    <g fill="none" strokeWidth={1.75} strokeLinejoin="round" strokeLinecap="round">
      <path d={linePath(columns.map(({ x, p95Y }) => ({ x, y: p95Y })))} stroke="var(--phase-dhcp)" />
      <path d={linePath(columns.map(({ x, p50Y }) => ({ x, y: p50Y })))} stroke="var(--phase-stage2)" />
    </g>
  )
}

function CountColumn({ column, dimmed }: { column: DayColumn; dimmed: boolean }) {
  const base = durationHeight + between + countHeight
  const x = column.x - column.width / 2
  return (
    <g opacity={dimmed ? 0.45 : 1}>
      <rect
        x={x}
        y={base - column.readyHeight}
        width={column.width}
        height={column.readyHeight}
        fill="var(--phase-ready)"
        fillOpacity={0.5}
        rx={1}
      />
      <rect
        x={x}
        y={base - column.readyHeight - column.failedHeight}
        width={column.width}
        height={column.failedHeight}
        fill="var(--failed)"
        rx={1}
      />
    </g>
  )
}

const daysPerLabel = 7

function DayLabels({ columns }: { columns: DayColumn[] }) {
  const y = durationHeight + between + countHeight + 14
  return (
    <g className="fill-ink-faint text-2xs" textAnchor="middle">
      {columns.map(({ day, x }, index) => {
        const fromEnd = columns.length - 1 - index
        if (fromEnd % daysPerLabel !== 1) return null
        return (
          <text key={day.day} x={x} y={y} dominantBaseline="central">
            {formatDay(day.day).replace(/^\S+ /, '')}
          </text>
        )
      })}
    </g>
  )
}

function ChosenDay({ column }: { column: DayColumn | undefined }) {
  if (!column) return null
  return (
    <g className="pointer-events-none">
      <line x1={column.x} x2={column.x} y1={0} y2={durationHeight} stroke="var(--line-strong)" strokeDasharray="3 3" />
      {column.p95Y !== null && <circle cx={column.x} cy={column.p95Y} r={3} fill="var(--phase-dhcp)" />}
      {column.p50Y !== null && <circle cx={column.x} cy={column.p50Y} r={3} fill="var(--phase-stage2)" />}
    </g>
  )
}

/** The chart for those who do not see it. */
function DayTable({ days }: { days: DayOfBoots[] }) {
  const duration = (us: number | null) => (us === null ? 'none' : formatDuration(us))
  return (
    <div className="sr-only">
      <table>
        <caption>Boots of the last 30 days</caption>
        <thead>
          <tr>
            {['Day', 'Median', '95th percentile', 'Ready', 'Failed or timed out', 'Demo history'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((day) => (
            <tr key={day.day}>
              <th scope="row">{formatDay(day.day)}</th>
              <td>{duration(day.p50Us)}</td>
              <td>{duration(day.p95Us)}</td>
              <td>{day.readyCount}</td>
              <td>{day.failedCount}</td>
              <td>{day.generatedCount}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
