import { Dot, Tag, type Tone } from '../../components/tag'
import { edgeStateText, type RolloutEdge, type RolloutSummary } from './rollout-text'

const rolloutTones: Record<RolloutSummary['state'], { tone: Tone; word: string }> = {
  running: { tone: 'live', word: 'Running' },
  paused: { tone: 'silent', word: 'Paused' },
  done: { tone: 'ready', word: 'Done' },
  cancelled: { tone: 'plain', word: 'Cancelled' },
}

export function RolloutTag({ rollout }: { rollout: Pick<RolloutSummary, 'state' | 'pause'> }) {
  const { tone, word } = rolloutTones[rollout.state]
  const shown = rollout.pause && rollout.pause.reason !== 'by_hand' ? 'failed' : tone
  return (
    <Tag tone={shown}>
      <Dot tone={shown} pulsing={rollout.state === 'running'} />
      {word}
    </Tag>
  )
}

const edgeTones: Record<RolloutEdge['state'], Tone> = {
  waiting: 'plain',
  ordered: 'live',
  running: 'ready',
  failed: 'failed',
  silent: 'failed',
  late: 'silent',
  left: 'plain',
}

export function RolloutEdgeTag({ state }: { state: RolloutEdge['state'] }) {
  const tone = edgeTones[state]
  return (
    <Tag tone={tone}>
      <Dot tone={tone} pulsing={state === 'ordered'} />
      {edgeStateText[state]}
    </Tag>
  )
}

const shares = ['running', 'ordered', 'failed', 'silent', 'late', 'left', 'waiting'] as const
const colours: Record<(typeof shares)[number], string> = {
  running: 'bg-ready',
  ordered: 'bg-live',
  failed: 'bg-failed',
  silent: 'bg-failed/60',
  late: 'bg-silent',
  left: 'bg-line-strong',
  waiting: 'bg-line',
}

/** The progress at a glance, with the same meaning as the words beside it. */
export function CountsBar({ counts }: { counts: RolloutSummary['counts'] }) {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  return (
    <span aria-hidden="true" className="flex h-1.5 w-full min-w-16 overflow-hidden rounded-full bg-line">
      {shares.map((share) => (
        <span key={share} className={colours[share]} style={{ width: `${(100 * (counts[share] ?? 0)) / total}%` }} />
      ))}
    </span>
  )
}
