import { Dot, Tag, type Tone } from '../../components/tag'
import { formatCount } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type ExperimentSummary = RouterOutputs['experiment']['list']['items'][number]
export type ExperimentDetail = RouterOutputs['experiment']['get']
export type Cell = ExperimentDetail['cells'][number]
export type Trial = RouterOutputs['experiment']['trials']['items'][number]

const tones: Record<ExperimentSummary['state'], { tone: Tone; word: string }> = {
  running: { tone: 'live', word: 'Running' },
  paused: { tone: 'silent', word: 'Paused' },
  done: { tone: 'ready', word: 'Done' },
  stopped: { tone: 'plain', word: 'Stopped' },
}

export function ExperimentTag({ state }: { state: ExperimentSummary['state'] }) {
  const { tone, word } = tones[state]
  return (
    <Tag tone={tone}>
      <Dot tone={tone} pulsing={state === 'running'} />
      {word}
    </Tag>
  )
}

const trialTones: Record<Trial['state'], { tone: Tone; word: string }> = {
  waiting: { tone: 'plain', word: 'Waiting' },
  ordered: { tone: 'live', word: 'Ordered' },
  booting: { tone: 'live', word: 'Booting' },
  ready: { tone: 'ready', word: 'Ready' },
  failed: { tone: 'failed', word: 'Failed' },
  dropped: { tone: 'silent', word: 'Not counted' },
}

export const trialStates = Object.entries(trialTones).map(([value, { word }]) => ({ value, label: word }))

export function TrialTag({ state }: { state: Trial['state'] }) {
  const { tone, word } = trialTones[state]
  return (
    <Tag tone={tone}>
      <Dot tone={tone} pulsing={state === 'booting'} />
      {word}
    </Tag>
  )
}

const shares = ['ready', 'failed', 'dropped', 'booting', 'ordered', 'waiting'] as const
const colours: Record<(typeof shares)[number], string> = {
  ready: 'bg-ready',
  failed: 'bg-failed',
  dropped: 'bg-silent',
  booting: 'bg-live',
  ordered: 'bg-live/60',
  waiting: 'bg-line',
}

/** Progress in numbers, and a bar with the same meaning. */
export function Progress({ counts }: { counts: ExperimentSummary['counts'] }) {
  const of = (share: (typeof shares)[number]) => counts[share] ?? 0
  const total = shares.reduce((sum, share) => sum + of(share), 0)
  const others = [of('failed') && `${of('failed')} failed`, of('dropped') && `${of('dropped')} not counted`]
  return (
    <span className="flex min-w-32 flex-col gap-1">
      <span aria-hidden="true" className="flex h-1.5 w-full overflow-hidden rounded-full bg-line">
        {shares.map((share) => (
          <span
            key={share}
            className={colours[share]}
            style={{ width: `${(100 * of(share)) / Math.max(1, total)}%` }}
          />
        ))}
      </span>
      <span className="text-ink-soft text-xs">
        {[`${formatCount(of('ready'))} of ${formatCount(total)} ready`, ...others.filter(Boolean)].join(', ')}
      </span>
    </span>
  )
}
