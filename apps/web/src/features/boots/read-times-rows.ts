import type { BootDetail } from './boot-types'

export type ReadTimes = NonNullable<BootDetail['readTimes']>
type PartTimes = Omit<ReadTimes, 'phases'>

export interface ReadTimesRow {
  title: string
  meaning: string
  times: ReadTimes['warm'] | ReadTimes['wire']
  /** Share of the sum of all parts, 0 to 1; null if it was not measured, or is no part. */
  share: number | null
  colour: string
  isPart: boolean
}

const parts = [
  ['warm', 'Storage, from memory', 'On the edge, until the data is available: warm reads', '--phase-nbp'],
  ['cold', 'Storage, from disk', 'On the edge, until the data is available: cold reads, which wait', '--phase-dhcp'],
  ['send', 'Send', 'On the edge, until its kernel has sent the last packet', '--phase-loader'],
  ['wire', 'Network', 'Between device and edge, including retransmissions', '--phase-stage2'],
  ['turnaround', 'Client think time', 'On the device, from an answer to its next read', '--phase-breather'],
] as const

const fetch = {
  title: 'Whole read',
  meaning: 'On the device, from the read request to the last byte: storage, send and network together',
} as const
const late = {
  title: 'Delay by retransmission',
  meaning: 'Contained in the network: how much later reads were because the edge had to send parts of them again',
} as const
const wait = {
  title: 'Blocked on disk',
  meaning: 'From the operating system’s read until its data arrives, with or without read-ahead',
} as const

const wholeBoot = { title: 'Whole boot', meaning: 'Until the boot finished' }
const phases = {
  initramfs: { title: 'Initramfs', meaning: 'OS disk streaming until the initramfs started the operating system' },
  system: { title: 'OS', meaning: 'OS disk streaming from then until the boot finished' },
} as const

export interface ReadTimesGroup {
  key: string
  title: string
  meaning: string
  reads: number
  /** Null where the edge did not count them. */
  bytes: number | null
  /** Empty where nothing was read. */
  rows: ReadTimesRow[]
}

/** Each phase that the device distinguishes, and the whole boot. */
export function readTimesGroups({ phases: told, ...whole }: ReadTimes): ReadTimesGroup[] {
  const group = (key: string, words: { title: string; meaning: string }, times: PartTimes) => ({
    key,
    ...words,
    reads: times.reads,
    bytes: times.bytes,
    rows: times.reads === 0 && parts.every(([name]) => times[name] === null) ? [] : readTimesRows(times),
  })
  return [...told.map(({ name, ...times }) => group(name, phases[name], times)), group('whole', wholeBoot, whole)]
}

export function readTimesRows(readTimes: PartTimes): ReadTimesRow[] {
  const total = Math.max(
    1,
    parts.reduce((sum, [name]) => sum + (readTimes[name]?.sumUs ?? 0), 0),
  )
  const rows: ReadTimesRow[] = parts.map(([name, title, meaning, colour]) => {
    const times = readTimes[name]
    return {
      title,
      meaning,
      times,
      share: times && times.sumUs / total,
      colour: `var(${colour})`,
      isPart: true,
    }
  })
  const beside: [{ title: string; meaning: string }, ReadTimesRow['times']][] = [
    [fetch, readTimes.fetch],
    [late, readTimes.late],
    [wait, readTimes.wait],
  ]
  return [
    ...rows,
    ...beside
      .filter(([, times]) => times !== null)
      .map(([words, times]) => ({ ...words, times, share: null, colour: 'transparent', isPart: false })),
  ]
}
