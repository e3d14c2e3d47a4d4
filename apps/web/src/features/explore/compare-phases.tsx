import { Panel, Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { formatDuration } from '../../lib/format-quantity'
import {
  type ComparedPhase,
  type Comparison,
  failuresText,
  intervalText,
  phaseTitle,
  signedDuration,
  verdictOf,
} from './compare-text'

/** The medians of each phase in both sets, and how they differ. */
export function ComparePhases({ comparison }: { comparison: Comparison }) {
  const { phases } = comparison
  const ends = phases.flatMap(({ difference }) => (difference ? [difference.low, difference.high] : []))
  const reach = Math.max(1, ...ends.map(Math.abs))
  return (
    <Panel title="Phase by phase" flush>
      <Table
        label="Phases of both sets"
        rows={phases}
        rowKey={({ phase }) => phase}
        columns={[
          {
            title: 'Phase',
            cell: ({ phase }) => <span className={phase === 'total' ? 'font-semibold' : ''}>{phaseTitle(phase)}</span>,
          },
          medianColumn('Baseline', ({ baseMedianUs }) => baseMedianUs),
          medianColumn('These', ({ setMedianUs }) => setMedianUs),
          ...differenceColumns(reach),
        ]}
      />
      <p className="border-line border-t px-4 py-3 text-ink-soft text-sm">{failuresText(comparison)}</p>
    </Panel>
  )
}

function medianColumn(title: string, of: (phase: ComparedPhase) => number | null): Column<ComparedPhase> {
  return { title, meaning: `Median: ${title}`, align: 'right', cell: (phase) => <Median us={of(phase)} /> }
}

function differenceColumns(reach: number): Column<ComparedPhase>[] {
  return [
    {
      title: 'Difference',
      meaning: 'Of the medians, with a 95 % interval for all rows together',
      align: 'right',
      cell: ({ difference }) =>
        difference ? (
          <span className="whitespace-nowrap">
            {signedDuration(difference.difference)} <span className="text-ink-faint">({intervalText(difference)})</span>
          </span>
        ) : (
          <Unknown label="too few boots" />
        ),
    },
    {
      title: 'Interval',
      wide: true,
      from: 'lg',
      cell: ({ difference }) => <Interval difference={difference} reach={reach} />,
    },
    {
      title: 'Result',
      cell: ({ difference }) => {
        const { text, tone } = verdictOf(difference)
        return <Tag tone={tone}>{text}</Tag>
      },
    },
  ]
}

function Median({ us }: { us: number | null }) {
  return us === null ? (
    <Unknown label="no ready boots" />
  ) : (
    <span className="whitespace-nowrap">{formatDuration(us)}</span>
  )
}

interface IntervalProps {
  difference: ComparedPhase['difference']
  /** The largest distance from 0 of all rows, in µs. */
  reach: number
}

/** Decoration: the row says the same in numbers. */
function Interval({ difference, reach }: IntervalProps) {
  if (!difference) return null
  const at = (us: number) => `${50 + (us / reach) * 48}%`
  const width = `${((difference.high - difference.low) / reach) * 48}%`
  const colour = difference.isClear ? 'bg-ink' : 'bg-ink-faint'
  return (
    <span aria-hidden="true" className="relative block h-5 min-w-32">
      <span className="absolute inset-y-0 left-1/2 w-px bg-line-strong" />
      <span className={`absolute top-2.25 h-0.5 ${colour}`} style={{ left: at(difference.low), width }} />
      <span
        className={`absolute top-1.5 -ml-1 size-2 rounded-full ${colour}`}
        style={{ left: at(difference.difference) }}
      />
    </span>
  )
}
