import type { ScheduleReason } from '@bootfarm/api/router'
import { countOf } from '../../lib/format-quantity'
import { rhythmOf, weekdays } from './schedule-draft'
import type {
  PlannedInstant,
  RunDetail,
  RunDevice,
  RunSummary,
  ScheduleSummary,
  ScheduleTarget,
  ScheduleWhen,
} from './schedule-types'

/** `Mon–Fri at 06:30`, `daily at 06:30`, `once, 24 Dec 2026 06:30`; any other expression is returned unchanged. */
export function whenText(when: ScheduleWhen): string {
  const { rhythm, time = '', date = '', days = [] } = rhythmOf(when)
  if (rhythm === 'once') return `once, ${dateText(date)} ${time}`
  if (rhythm === 'daily') return `daily at ${time}`
  if (rhythm === 'weekly') return `${daysText(days)} at ${time}`
  return when.kind === 'cron' ? when.expression : ''
}

function dateText(date: string): string {
  const options = { timeZone: 'UTC', day: 'numeric', month: 'short', year: 'numeric' } as const
  return new Date(`${date}T00:00:00Z`).toLocaleDateString('en-GB', options)
}

function daysText(days: number[]): string {
  const names = weekdays.filter(({ number }) => days.includes(number)).map(({ short }) => short)
  const first = weekdays.findIndex(({ short }) => short === names[0])
  const isRow = names.length > 2 && names.every((name, index) => weekdays[first + index]?.short === name)
  return isRow ? `${names[0]}–${names.at(-1)}` : names.join(', ')
}

export const powerText: Record<ScheduleSummary['power'], string> = {
  wake_on_lan: 'Wake-on-LAN',
  hook: 'Power command on the edge',
  both: 'Wake-on-LAN and power command',
}

export const noteText: Record<NonNullable<PlannedInstant['note']>, string> = {
  moved: 'This local time does not exist that day (daylight saving time). The run starts after the clock change.',
  first_of_two:
    'This local time occurs twice that day (daylight saving time). The schedule runs at the first occurrence only.',
  second_of_two: 'This local time occurs twice that day (daylight saving time). This is the second occurrence.',
}

export function targetText(target: ScheduleTarget): string {
  if (target.kind === 'tag') return `tag ${target.tag}`
  return `${target.kind} ${target.name}`
}

const reasons: Record<ScheduleReason, string> = {
  disabled: 'device disabled',
  nothing_to_boot: 'no vDisk to boot',
  booting_already: 'already booting',
  hook_failed: 'power command failed',
  late: 'more than 15 minutes late',
  stopped: 'schedule disabled',
  no_answer: 'the device did not answer',
  no_boot: 'no boot seen',
  not_reported: 'not reported by any edge',
  edge_away: 'edge away, no report',
  not_ended: 'boot had not ended when the run was closed',
  action_unknown: 'edge too old; update it',
  too_many: 'too many concurrent runs on the edge',
}

/** A newer edge may have a reason that is not known here. */
const knownReasons = new Map<string, string>(Object.entries(reasons))

export function reasonText(reason: string | null): string | null {
  return reason === null ? null : (knownReasons.get(reason) ?? reason.replaceAll('_', ' '))
}

export const deviceStateText: Record<RunDevice['state'], string> = {
  waiting: 'Waiting',
  sent: 'Powered on',
  booting: 'Booting',
  ready: 'Ready',
  failed: 'Failed',
  not_seen: 'No response',
  skipped: 'Skipped',
}

/** `2 of 3 edges have reported`; null for a run of an older control plane, which did not keep its edges. */
export function edgesText({ all, reported }: RunDetail['edges']): string | null {
  return all === 0 ? null : `${reported} of ${countOf(all, 'edge')} ${all === 1 ? 'has' : 'have'} reported the end`
}

/** `28 of 30 ready, 2 failed`. */
export function countsText({ deviceCount, counts }: RunSummary): string {
  const { ready = 0, failed = 0, not_seen = 0, skipped = 0 } = counts
  if (deviceCount === 0) return 'no devices'
  const parts = [`${ready} of ${countOf(deviceCount, 'device')} ready`]
  if (failed > 0) parts.push(`${failed} failed`)
  if (not_seen > 0) parts.push(`${not_seen} no response`)
  if (skipped > 0) parts.push(`${skipped} skipped`)
  return parts.join(', ')
}
