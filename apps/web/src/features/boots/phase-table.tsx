import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { formatBytes, formatCount, formatDuration, formatOffset } from '../../lib/format-quantity'
import type { BootPhaseView } from './boot-types'
import { phaseColour } from './phase-colour'
import { type GuestStep, guestStepColour, guestStepTitles } from './waterfall/guest-steps'

const sources = {
  observed: 'Observed on the network by the edge.',
  reported: 'Reported by the device.',
  inferred: 'Inferred from the phases before and after.',
} as const

/** Nothing counted is a dash, so that what happened stands out. */
function counted(value: number, format: (value: number) => string = formatCount) {
  return value === 0 ? <Unknown label="0" /> : format(value)
}

function columnsOf(running: boolean, totalUs: number): Column<BootPhaseView>[] {
  const length = ({ durationUs }: BootPhaseView) => {
    if (durationUs !== null) return formatDuration(durationUs)
    return running ? <span className="text-live">in progress</span> : <Unknown label="end not observed" />
  }
  const share = ({ durationUs }: BootPhaseView) =>
    durationUs === null ? <Unknown /> : `${Math.round((durationUs / totalUs) * 100)} %`
  return [
    { title: 'Phase', cell: (phase) => <PhaseName phase={phase} /> },
    { title: 'Start', align: 'right', cell: (phase) => formatDuration(phase.startUs) },
    {
      title: 'Duration',
      align: 'right',
      cell: (phase) => (phase.name === 'ready' ? <Unknown label="instant" /> : length(phase)),
    },
    {
      title: 'Share',
      align: 'right',
      cell: (phase) => (phase.name === 'ready' ? <Unknown label="instant" /> : share(phase)),
    },
    { title: 'Received', align: 'right', cell: (phase) => counted(phase.bytesIn, formatBytes) },
    { title: 'Sent', align: 'right', cell: (phase) => counted(phase.bytesOut, formatBytes) },
    {
      title: 'Pkts in',
      meaning: 'Packets received by the edge',
      align: 'right',
      cell: (phase) => counted(phase.packetsIn),
    },
    {
      title: 'Pkts out',
      meaning: 'Packets sent by the edge',
      align: 'right',
      cell: (phase) => counted(phase.packetsOut),
    },
    {
      title: 'Reads',
      meaning: 'Reads sent over the network. A large read is split into several, and each one counts.',
      align: 'right',
      cell: (phase) => counted(phase.reads),
    },
    { title: 'Retries', align: 'right', cell: (phase) => counted(phase.retries) },
    {
      title: 'Requested again',
      meaning: 'Fragments that had not arrived when their read was sent again: lost, or only late',
      align: 'right',
      cell: (phase) => counted(phase.missingFragments),
    },
    { title: 'Idle gaps', align: 'right', cell: (phase) => <Silences gaps={phase.gaps} /> },
    {
      title: 'Source',
      cell: (phase) => (
        <span title={sources[phase.source]} className="text-ink-soft">
          {phase.source}
        </span>
      ),
    },
  ]
}

/** The waterfall in numbers. Sent and received as the edge sees it. */
export function PhaseTable({
  phases,
  running,
  totalUs,
}: {
  phases: BootPhaseView[]
  running: boolean
  totalUs: number
}) {
  return (
    <Table
      label="Phases"
      columns={columnsOf(running, Math.max(1, totalUs))}
      rows={phases}
      rowKey={(phase) => phase.name}
    />
  )
}

function PhaseName({ phase }: { phase: BootPhaseView }) {
  const text = bootPhaseText(phase.name)
  return (
    <span className="inline-flex items-center gap-2 font-medium" title={`From ${text.begins}, until ${text.ends}`}>
      <span aria-hidden="true" className="size-2 rounded-full" style={{ background: phaseColour(phase.name) }} />
      {text.title}
    </span>
  )
}

function Silences({ gaps }: { gaps: BootPhaseView['gaps'] }) {
  if (gaps.length === 0) return <Unknown label="0" />
  const longest = Math.max(...gaps.map(({ durationUs }) => durationUs))
  return (
    <span title={gaps.map((gap) => `${formatDuration(gap.durationUs)} from ${formatDuration(gap.atUs)}`).join('\n')}>
      {gaps.length > 1 && `${gaps.length}, longest `}
      {formatDuration(longest)}
    </span>
  )
}

type Row = GuestStep & { key: string }

const columns: Column<Row>[] = [
  {
    title: 'Step',
    cell: (step) => (
      <span className="inline-flex items-center gap-2 font-mono text-xs">
        <span aria-hidden="true" className="size-2 rounded-full" style={{ background: guestStepColour(step.group) }} />
        {step.name}
      </span>
    ),
  },
  { title: 'Part', cell: (step) => guestStepTitles[step.group] },
  {
    title: 'Start',
    meaning: 'Since the boot’s first packet',
    align: 'right',
    cell: (step) => formatOffset(step.startUs),
  },
  { title: 'Duration', align: 'right', cell: (step) => formatDuration(step.durationUs) },
  {
    title: 'Source',
    wide: true,
    cell: () => (
      <span title="Reported by the device and placed relative to the start of its kernel." className="text-ink-soft">
        reported
      </span>
    ),
  },
]

/** The device's own steps in numbers. */
export function StepTable({ steps }: { steps: GuestStep[] }) {
  // By place: a device may report two steps with the same name and start.
  const rows = steps.map((step, index) => ({ ...step, key: String(index) }))
  return <Table label="OS boot steps" columns={columns} rows={rows} rowKey={({ key }) => key} />
}
