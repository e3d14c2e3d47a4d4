import type { BootDetail } from './boot-types'

type ReadTimes = NonNullable<BootDetail['readTimes']>

export interface ReadTimesRow {
  title: string
  meaning: string
  times: ReadTimes['storage']
  /** Of the sum of all parts, 0 to 1; null where it was not measured. */
  share: number | null
  colour: string
}

const parts = [
  ['storage', 'Storage', 'At the edge, from the read until its bytes were in hand', '--phase-nbp'],
  ['send', 'Send', 'At the edge, until its kernel had the last packet', '--phase-loader'],
  ['wire', 'Wire', 'On the way between device and edge, losses included', '--phase-stage2'],
  ['turnaround', 'Turnaround', 'In the machine, from an answer to its next read', '--phase-breather'],
] as const

export function readTimesRows(readTimes: ReadTimes): ReadTimesRow[] {
  const total = Math.max(
    1,
    parts.reduce((sum, [name]) => sum + (readTimes[name]?.sumUs ?? 0), 0),
  )
  return parts.map(([name, title, meaning, colour]) => {
    const times = readTimes[name]
    return { title, meaning, times, share: times && times.sumUs / total, colour: `var(${colour})` }
  })
}
