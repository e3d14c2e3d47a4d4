import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { TextLink } from '../../components/button'
import { Panel, Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { formatCount, formatDuration } from '../../lib/format-quantity'
import type { Cell, ExperimentDetail } from './experiment-tags'
import { chanceText, intervalText, signedDuration, verdictOf } from './lab-text'

type Row = Cell & { index: number }

/** The cells of an experiment, and how each differs from what devices have without it. */
export function CellsPanel({ experiment }: { experiment: ExperimentDetail }) {
  const rows = experiment.cells.map((cell, index) => ({ ...cell, index }))
  return (
    <Panel title="Results" flush>
      <Table
        label="Cells of the experiment"
        rows={rows}
        rowKey={({ index }) => String(index)}
        columns={columnsOf(experiment)}
      />
      <p className="border-line border-t px-4 py-3 text-ink-soft text-xs">
        Times until ready. A difference is the median over pairs of boots of the same device in the same repetition. The
        intervals of all cells together hold the true differences 19 times of 20.
      </p>
    </Panel>
  )
}

function columnsOf({ id, cells, pairsNeeded, recommendation }: ExperimentDetail): Column<Row>[] {
  const ends = cells.flatMap(({ difference }) => (difference ? [difference.lowUs, difference.highUs] : []))
  const reach = Math.max(1, ...ends.map(Math.abs))
  return [
    {
      title: 'Settings',
      cell: ({ title, index, reference }) => (
        <span className="flex min-w-36 flex-wrap items-center gap-2 py-1.5 xl:min-w-64">
          <span className="wrap-anywhere whitespace-normal font-medium text-ink">{title}</span>
          {reference === index && <Tag tone="plain">Baseline</Tag>}
          {recommendation.cell === index && <Tag tone="ready">Recommended</Tag>}
        </span>
      ),
    },
    {
      title: 'Ready',
      align: 'right',
      cell: ({ index, readyCount, title }) => (
        <BootsLink href={`/lab/${id}?cell=${index}#boots`} count={readyCount} of={`ready boots with ${title}`} />
      ),
    },
    {
      title: 'Failed',
      align: 'right',
      from: 'sm',
      cell: ({ index, failedCount, title }) => (
        <BootsLink
          href={`/lab/${id}?cell=${index}&state=failed#boots`}
          count={failedCount}
          of={`failed boots with ${title}`}
        />
      ),
    },
    { title: 'Median', align: 'right', cell: ({ medianUs }) => <Time us={medianUs} /> },
    { title: 'p95', align: 'right', from: 'md', cell: ({ p95Us }) => <Time us={p95Us} /> },
    ...differenceColumns(reach, pairsNeeded),
  ]
}

function differenceColumns(reach: number, pairsNeeded: number): Column<Row>[] {
  return [
    {
      title: 'Difference',
      meaning: 'To the baseline, with the interval for all cells together',
      align: 'right',
      from: 'sm',
      cell: ({ difference, index, reference }) =>
        difference ? (
          <span className="whitespace-nowrap" title={chanceText(difference.chance)}>
            {signedDuration(difference.us)} <span className="text-ink-faint">({intervalText(difference)})</span>
          </span>
        ) : (
          <Unknown label={index === reference ? 'the baseline' : 'too few boots'} />
        ),
    },
    {
      title: 'Interval',
      wide: true,
      from: 'xl',
      cell: ({ difference }) => <Interval difference={difference} reach={reach} />,
    },
    {
      title: 'Result',
      cell: (row) => {
        if (row.index === row.reference) return <Unknown label="the baseline" />
        const { text, tone } = verdictOf(row, pairsNeeded)
        return <Tag tone={tone}>{text}</Tag>
      },
    },
  ]
}

function BootsLink({ href, count, of }: { href: string; count: number; of: string }) {
  if (count === 0) return <span className="text-ink-faint">0</span>
  return (
    <TextLink href={href}>
      {formatCount(count)}
      <span className="sr-only"> {of}</span>
    </TextLink>
  )
}

function Time({ us }: { us: number | null }) {
  if (us === null) return <Unknown label="no ready boots" />
  return <span className="whitespace-nowrap">{formatDuration(us)}</span>
}

/** Decoration: the row says the same in numbers. */
function Interval({ difference, reach }: { difference: Cell['difference']; reach: number }) {
  if (!difference) return null
  const at = (us: number) => `${50 + (us / reach) * 48}%`
  const width = `${((difference.highUs - difference.lowUs) / reach) * 48}%`
  const colour = difference.isClear ? 'bg-ink' : 'bg-ink-faint'
  return (
    <span aria-hidden="true" className="relative block h-5 min-w-32">
      <span className="absolute inset-y-0 left-1/2 w-px bg-line-strong" />
      <span className={`absolute top-2.25 h-0.5 ${colour}`} style={{ left: at(difference.lowUs), width }} />
      <span className={`absolute top-1.5 -ml-1 size-2 rounded-full ${colour}`} style={{ left: at(difference.us) }} />
    </span>
  )
}

/** The medians of each phase, where the cells' boots have one. */
export function PhasesPanel({ experiment: { cells } }: { experiment: ExperimentDetail }) {
  const phases = [...new Set(cells.flatMap(({ phasesUs }) => Object.keys(phasesUs)))]
  if (phases.length === 0) return null
  const rows = cells.map((cell, index) => ({ ...cell, index }))
  return (
    <Panel title="Phases" flush>
      <Table
        label="Phases of the cells"
        rows={rows}
        rowKey={({ index }) => String(index)}
        columns={[
          {
            title: 'Settings',
            wide: true,
            cell: ({ title }) => <span className="wrap-anywhere whitespace-normal">{title}</span>,
          },
          ...phases.map(
            (phase): Column<Row> => ({
              title: phaseTitle(phase),
              align: 'right',
              cell: ({ phasesUs }) => <Time us={phasesUs[phase] ?? null} />,
            }),
          ),
        ]}
      />
      <p className="border-line border-t px-4 py-3 text-ink-soft text-xs">
        Medians of ready boots. Medians of phases do not add up exactly.
      </p>
    </Panel>
  )
}

function phaseTitle(phase: string): string {
  return bootPhaseText(phase as Parameters<typeof bootPhaseText>[0]).title
}
