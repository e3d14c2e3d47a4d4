import { type Column, Table } from '../../../components/table'
import { formatBytes, formatCount, formatOffset } from '../../../lib/format-quantity'
import {
  layOutSeries,
  pointAt,
  pointText,
  type Series,
  type SeriesPoint,
  type SeriesRow,
  usedKeys,
} from './series-layout'

const headHeight = 24
const rowHeight = 38
const barHeight = 26

export function seriesRowsHeight(series: Series): number {
  return headHeight + usedKeys(series).length * rowHeight
}

interface SeriesRowsProps {
  series: Series
  axis: { fromUs: number; toUs: number }
  /** Under the pointer or the focus; null: the highest values are shown. */
  point: SeriesPoint | null
  y: number
  gutter: number
  widthPx: number
}

const colours = {
  bytes: 'var(--phase-stage2)',
  // Many of them are no trouble: only what was sent again alarms.
  reads: 'var(--chart-c)',
  retransmissions: 'var(--failed)',
} as const

/** A row of bars for each value, on the axis of the phases. */
export function SeriesRows({ series, axis, point, y, gutter, widthPx }: SeriesRowsProps) {
  const rows = layOutSeries(series, axis, widthPx)
  return (
    <g>
      <line x1={0} x2={gutter + widthPx} y1={y + 3} y2={y + 3} stroke="var(--line)" />
      <text x={0} y={y + 15} dominantBaseline="central" className="fill-ink-faint text-2xs">
        Over time
      </text>
      {rows.map((row, index) => (
        <g key={row.key} transform={`translate(0 ${y + headHeight + index * rowHeight})`}>
          <text x={0} y={11} dominantBaseline="central" className="fill-ink text-xs">
            {row.title}
          </text>
          <text x={0} y={26} dominantBaseline="central" className="fill-ink-faint text-2xs">
            {point ? point.values[row.key] : `at most ${row.most}`}
          </text>
          <Bars row={row} gutter={gutter} widthPx={widthPx} />
        </g>
      ))}
    </g>
  )
}

function Bars({ row, gutter, widthPx }: { row: SeriesRow; gutter: number; widthPx: number }) {
  const bottom = (rowHeight + barHeight) / 2
  return (
    <g transform={`translate(${gutter} 0)`}>
      <line x1={0} x2={widthPx} y1={bottom} y2={bottom} stroke="var(--line)" />
      {row.bars.map(({ x, width, share }) => {
        const height = Math.max(1, barHeight * share)
        return <rect key={x} x={x} y={bottom - height} width={width} height={height} fill={colours[row.key]} />
      })}
    </g>
  )
}

interface SeriesSliderProps {
  series: Series
  point: SeriesPoint | null
  gutter: number
  /** Called with the middle of the bucket that the keys or the finger have reached. */
  onPoint: (us: number) => void
}

/** Moves the reading line by keys and fingers. */
export function SeriesSlider({ series, point, gutter, onPoint }: SeriesSliderProps) {
  const shown = point ?? pointAt(series, 0)
  return (
    <div className="mt-1 flex" style={{ paddingLeft: gutter }}>
      <input
        type="range"
        aria-label="Point in time"
        aria-valuetext={shown ? pointText(series, shown) : undefined}
        min={0}
        max={series.bytes.length - 1}
        value={shown?.index ?? 0}
        onChange={({ target }) => onPoint((target.valueAsNumber + 0.5) * series.widthUs)}
        className="h-4 w-full accent-ink-faint"
      />
    </div>
  )
}

interface Bucket {
  index: number
  fromUs: number
  toUs: number
  bytes: number
  reads: number
  retransmissions: number
}

const columns: Column<Bucket>[] = [
  { title: 'From', align: 'right', cell: ({ fromUs }) => formatOffset(fromUs) },
  { title: 'To', align: 'right', cell: ({ toUs }) => formatOffset(toUs) },
  { title: 'Sent', align: 'right', cell: ({ bytes }) => formatBytes(bytes) },
  {
    title: 'Reads in flight',
    meaning: 'The most at a time that had arrived at the edge and were not answered yet',
    align: 'right',
    cell: ({ reads }) => formatCount(reads),
  },
  { title: 'Retransmissions', align: 'right', cell: ({ retransmissions }) => formatCount(retransmissions) },
]

/** The rows in numbers. */
export function SeriesTable({ series }: { series: Series }) {
  const { widthUs, bytes } = series
  const buckets = bytes.map((sent, index) => ({
    index,
    fromUs: index * widthUs,
    toUs: (index + 1) * widthUs,
    bytes: sent,
    reads: series.reads[index] ?? 0,
    retransmissions: series.retransmissions[index] ?? 0,
  }))
  return <Table label="Over time" columns={columns} rows={buckets} rowKey={({ index }) => String(index)} />
}
