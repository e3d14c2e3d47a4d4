import { type Column, Table } from '../../components/table'
import { formatDuration, formatOffset } from '../../lib/format-quantity'
import { type GuestStep, guestStepColour, guestStepTitles } from './waterfall/guest-steps'

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
  // By place: a device may report two steps of one name and begin.
  const rows = steps.map((step, index) => ({ ...step, key: String(index) }))
  return <Table label="OS boot steps" columns={columns} rows={rows} rowKey={({ key }) => key} />
}
