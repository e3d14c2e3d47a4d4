import { Instant } from '../../components/instant'
import { Dot, Tag, type Tone } from '../../components/tag'
import type { Listed } from '../../lib/trpc'
import { isCertain } from './wait-notice'

type DeviceSummary = Listed<'device'>
type Known = Pick<DeviceSummary, 'now' | 'lastBoot' | 'waitsFor'>
type State = DeviceSummary['now']['state']

interface Shown {
  tone: Tone
  word: string
  title: string
}

const states: Record<State, Shown> = {
  booting: { tone: 'live', word: 'Booting', title: 'A boot is in progress.' },
  running: { tone: 'ready', word: 'Running', title: 'The last boot reached Ready.' },
  restarting: {
    tone: 'live',
    word: 'Restarting',
    title: 'The device accepted a restart order and has not booted yet.',
  },
  not_heard: {
    tone: 'silent',
    word: 'Offline',
    title:
      'The last boot reached Ready, but the edge no longer receives anything from the device. It is powered off or disconnected.',
  },
  off: { tone: 'plain', word: 'Off', title: 'The device accepted a power-off order.' },
  local_disk: {
    tone: 'plain',
    word: 'Local disk',
    title: 'In the last boot, the boot menu started the local disk. The device has not been seen since.',
  },
  failed: { tone: 'failed', word: 'Failed', title: 'The last boot ended with a known cause.' },
  unknown: { tone: 'plain', word: 'No data', title: 'No report gives the status.' },
}

/** Its system is running, and waits for a disk that does not answer. */
const standsStill: Shown = {
  tone: 'failed',
  word: 'Stopped',
  title: 'The last boot reached Ready, but its disk is now stopped. See the write cache.',
}

function shownOf({ now, lastBoot, waitsFor }: Known): Shown {
  if (waitsFor && isCertain(waitsFor)) return { tone: 'failed', word: 'Waiting', title: waitsFor.sentence }
  const cache = lastBoot?.writeCache?.state
  return now.state === 'running' && (cache === 'stopped' || cache === 'lost') ? standsStill : states[now.state]
}

/** Null if unknown. */
function sinceOf(device: Known): string | null {
  if (device.waitsFor && isCertain(device.waitsFor)) return device.waitsFor.since
  return shownOf(device) === standsStill ? null : device.now.since
}

const unknownTitles = {
  never: 'The device has not booted yet.',
  silent: 'The last boot timed out.',
  no_response: 'The device did not answer the last power-on.',
  superseded: 'The device restarted, and the new boot has not been reported yet.',
  booting: 'The edge went offline while the device was booting.',
} as const

/** The device's current state, according to its reports. */
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
  if (outcome === 'silent' || outcome === 'no_response' || outcome === 'superseded') return unknownTitles[outcome]
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
    return `No data: ${unknownTitle(device.lastBoot).toLowerCase().replace(/\.$/, '')}`
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
