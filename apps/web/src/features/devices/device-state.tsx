import { Instant } from '../../components/instant'
import { Dot, Tag, type Tone } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'
import { isCertain } from './wait-notice'

type DeviceSummary = RouterOutputs['device']['list']['items'][number]
type Known = Pick<DeviceSummary, 'now' | 'lastBoot' | 'waitsFor'>
type State = DeviceSummary['now']['state']

interface Shown {
  tone: Tone
  word: string
  title: string
}

const states: Record<State, Shown> = {
  booting: { tone: 'live', word: 'Booting', title: 'Its boot goes on.' },
  running: {
    tone: 'ready',
    word: 'Running',
    title: 'Its last boot became ready.',
  },
  restarting: {
    tone: 'live',
    word: 'Restarting',
    title: 'It took the order to restart; its next boot is awaited.',
  },
  not_heard: {
    tone: 'silent',
    word: 'Not heard',
    title: 'Its last boot became ready, and its edge hears nothing of it any more: it is off, or cut off.',
  },
  off: { tone: 'plain', word: 'Off', title: 'It took the order to switch itself off.' },
  local_disk: {
    tone: 'plain',
    word: 'Own disk',
    title: 'In its last boot the boot menu sent it to its own disk; it says nothing since.',
  },
  failed: { tone: 'failed', word: 'Failed', title: 'Its last boot ended with a known cause.' },
  unknown: { tone: 'plain', word: 'Unknown', title: 'No report says what it does.' },
}

/** Its system is there, and waits for a disk that does not answer. */
const standsStill: Shown = {
  tone: 'failed',
  word: 'Stopped',
  title: 'Its last boot became ready, and its disk stands still now: see its write cache.',
}

function shownOf({ now, lastBoot, waitsFor }: Known): Shown {
  if (waitsFor && isCertain(waitsFor)) return { tone: 'failed', word: 'Waiting', title: waitsFor.sentence }
  const cache = lastBoot?.writeCache?.state
  return now.state === 'running' && (cache === 'stopped' || cache === 'lost') ? standsStill : states[now.state]
}

/** Null where nobody knows. */
function sinceOf(device: Known): string | null {
  if (device.waitsFor && isCertain(device.waitsFor)) return device.waitsFor.since
  return shownOf(device) === standsStill ? null : device.now.since
}

const unknownTitles = {
  never: 'It has not booted yet.',
  silent: 'In its last boot nothing more was heard from it.',
  superseded: 'It started again, and that boot is not reported yet.',
  booting: 'Its edge has not been heard of while it was booting.',
} as const

/** What the device does now, as far as its reports say. */
export function DeviceStateTag({ device }: { device: Known }) {
  const { lastBoot } = device
  const { tone, word, title } = shownOf(device)
  return (
    <Tag tone={tone} title={title === states.unknown.title ? unknownTitle(lastBoot) : title}>
      <Dot tone={tone} pulsing={word === states.booting.word || word === states.restarting.word} />
      {word}
    </Tag>
  )
}

export function unknownTitle(lastBoot: DeviceSummary['lastBoot']): string {
  if (lastBoot === null) return unknownTitles.never
  const { outcome } = lastBoot
  if (outcome === 'silent' || outcome === 'superseded') return unknownTitles[outcome]
  return outcome === null ? unknownTitles.booting : states.unknown.title
}

/** The same with its time, for a cell of a list. */
export function DeviceStateCell({ device }: { device: Known }) {
  const since = sinceOf(device)
  return (
    <span className="inline-flex items-center gap-2">
      <DeviceStateTag device={device} />
      {since && (
        <span className="hidden text-ink-faint text-xs sm:inline">
          since <Instant at={since} />
        </span>
      )}
    </span>
  )
}

/** In a sentence, for a device's page. */
export function DeviceStateFact({ device }: { device: Known }) {
  const { word, title } = shownOf(device)
  if (title === states.unknown.title)
    return `not known: ${unknownTitle(device.lastBoot).toLowerCase().replace(/\.$/, '')}`
  const since = sinceOf(device)
  return (
    <span title={title}>
      {word.toLowerCase()}
      {since && (
        <>
          {' since '}
          <Instant at={since} />
        </>
      )}
    </span>
  )
}
