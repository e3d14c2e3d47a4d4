import { formatDuration } from '../../../lib/format-quantity'
import { type GuestStepGroup, guestStepColour, guestStepTitles } from './guest-steps'
import { labelSide, type StepBar } from './waterfall-layout'

const headHeight = 24
const barHeight = 9
const labelWidth = 60
/** Width of a letter of the monospaced 11 px font. */
const letterWidth = 6.7

/** On narrow windows a step's name stands above its bar. */
function rowHeightOf(narrow: boolean): number {
  return narrow ? 34 : 21
}

function groupsOf(steps: StepBar[]): { group: GuestStepGroup; steps: StepBar[] }[] {
  const groups: { group: GuestStepGroup; steps: StepBar[] }[] = []
  for (const step of steps) {
    const last = groups.at(-1)
    if (last?.group === step.group) last.steps.push(step)
    else groups.push({ group: step.group, steps: [step] })
  }
  return groups
}

export function stepRowsHeight(steps: StepBar[], narrow: boolean): number {
  return groupsOf(steps).length * headHeight + steps.length * rowHeightOf(narrow)
}

interface StepRowsProps {
  steps: StepBar[]
  /** Where the rows start. */
  y: number
  gutter: number
  widthPx: number
  narrow: boolean
}

/** The device's own report, below the edge's observations: thinner, because it is the device's claim. */
export function StepRows({ steps, y, gutter, widthPx, narrow }: StepRowsProps) {
  let top = y
  return groupsOf(steps).map((group) => {
    const groupTop = top
    top += headHeight + group.steps.length * rowHeightOf(narrow)
    return (
      <g key={group.group}>
        <line x1={0} x2={gutter + widthPx} y1={groupTop + 3} y2={groupTop + 3} stroke="var(--line)" />
        <text x={0} y={groupTop + 15} dominantBaseline="central" className="fill-ink-faint text-2xs">
          {guestStepTitles[group.group]}
        </text>
        {group.steps.map((step, index) => (
          <StepRow
            // biome-ignore lint/suspicious/noArrayIndexKey: a device may report two steps of one name and begin
            key={index}
            step={step}
            y={groupTop + headHeight + index * rowHeightOf(narrow)}
            gutter={gutter}
            widthPx={widthPx}
            narrow={narrow}
          />
        ))}
      </g>
    )
  })
}

interface StepRowProps extends Omit<StepRowsProps, 'steps'> {
  step: StepBar
}

function StepRow({ step, y, gutter, widthPx, narrow }: StepRowProps) {
  const barY = narrow ? y + 20 : y + (rowHeightOf(false) - barHeight) / 2
  const lettersMax = Math.floor((narrow ? gutter + widthPx : gutter - 10) / letterWidth)
  return (
    <g>
      <title>{`${step.name}: ${formatDuration(step.durationUs)}, reported by the device`}</title>
      <text
        x={0}
        y={narrow ? y + 9 : y + rowHeightOf(false) / 2}
        dominantBaseline="central"
        className="fill-ink-soft font-mono text-2xs"
      >
        {step.name.length > lettersMax ? `${step.name.slice(0, lettersMax - 1)}…` : step.name}
      </text>
      <g transform={`translate(${gutter} 0)`}>
        <rect
          x={step.x}
          y={barY}
          width={step.width}
          height={barHeight}
          rx={Math.min(2, step.width / 2)}
          fill={guestStepColour(step.group)}
        />
        <StepLabel step={step} y={barY + barHeight / 2} widthPx={widthPx} />
      </g>
    </g>
  )
}

function StepLabel({ step, y, widthPx }: { step: StepBar; y: number; widthPx: number }) {
  const side = labelSide(step, labelWidth, widthPx)
  // A bar is too thin for text: if neither side has space, its end stays free.
  if (side === 'inside') return null
  return (
    <text
      x={side === 'after' ? step.x + step.width + 6 : step.x - 6}
      y={y}
      dominantBaseline="central"
      textAnchor={side === 'after' ? 'start' : 'end'}
      className="fill-ink-soft text-2xs"
    >
      {formatDuration(step.durationUs)}
    </text>
  )
}
