import { Dot, Tag, type Tone } from '../../components/tag'
import { deviceStateText, reasonText } from './schedule-text'
import type { RunDevice, RunSummary } from './schedule-types'

const runTones: Record<RunSummary['state'], { tone: Tone; word: string }> = {
  waiting: { tone: 'plain', word: 'Waiting for edges' },
  running: { tone: 'live', word: 'Running' },
  done: { tone: 'ready', word: 'Done' },
  missed: { tone: 'failed', word: 'Missed' },
  stopped: { tone: 'silent', word: 'Stopped' },
}

export function RunTag({ run }: { run: RunSummary }) {
  const { tone, word } = runTones[run.state]
  const { failed = 0, not_seen = 0 } = run.counts
  const isWhole = run.state !== 'done' || failed + not_seen === 0
  const shown = isWhole ? tone : 'silent'
  return (
    <Tag tone={shown} {...(run.reason ? { title: reasonText(run.reason) ?? '' } : {})}>
      <Dot tone={shown} pulsing={run.state === 'running'} />
      {word}
    </Tag>
  )
}

const deviceTones: Record<RunDevice['state'], Tone> = {
  waiting: 'plain',
  sent: 'live',
  booting: 'live',
  ready: 'ready',
  failed: 'failed',
  not_seen: 'silent',
  skipped: 'plain',
}

export function DeviceTag({ state }: { state: RunDevice['state'] }) {
  const tone = deviceTones[state]
  return (
    <Tag tone={tone}>
      <Dot tone={tone} pulsing={state === 'booting'} />
      {deviceStateText[state]}
    </Tag>
  )
}

const shares = ['ready', 'booting', 'sent', 'failed', 'not_seen', 'skipped', 'waiting'] as const
const colours: Record<(typeof shares)[number], string> = {
  ready: 'bg-ready',
  booting: 'bg-live',
  sent: 'bg-live/50',
  failed: 'bg-failed',
  not_seen: 'bg-silent',
  skipped: 'bg-line-strong',
  waiting: 'bg-line',
}

/** The progress of a run at a glance, with the same meaning as the words beside it. */
export function RunBar({ run }: { run: RunSummary }) {
  if (run.deviceCount === 0) return null
  return (
    <span aria-hidden="true" className="flex h-1.5 w-full overflow-hidden rounded-full bg-line">
      {shares.map((state) => (
        <span
          key={state}
          className={colours[state]}
          style={{ width: `${((run.counts[state] ?? 0) * 100) / run.deviceCount}%` }}
        />
      ))}
    </span>
  )
}
