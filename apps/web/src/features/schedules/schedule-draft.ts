import type { ScheduleDetail, ScheduleFields, ScheduleTarget, ScheduleWhen } from './schedule-types'

/** The frequency, as people choose it; `cron` is everything that the others cannot express. */
export type Rhythm = 'once' | 'daily' | 'weekly' | 'cron'

/** Monday first; the numbers are cron's. */
export const weekdays = [
  { number: 1, short: 'Mon', name: 'Monday' },
  { number: 2, short: 'Tue', name: 'Tuesday' },
  { number: 3, short: 'Wed', name: 'Wednesday' },
  { number: 4, short: 'Thu', name: 'Thursday' },
  { number: 5, short: 'Fri', name: 'Friday' },
  { number: 6, short: 'Sat', name: 'Saturday' },
  { number: 0, short: 'Sun', name: 'Sunday' },
] as const

/** The form's content: texts as typed. */
export interface ScheduleDraft {
  name: string
  siteId: string | null
  rhythm: Rhythm
  /** `YYYY-MM-DD`, where it runs once. */
  date: string
  /** `HH:MM`. */
  time: string
  days: number[]
  expression: string
  timeZone: string
  ratePerMinute: string
  power: ScheduleFields['power']
  targets: ScheduleTarget[]
}

/** `YYYY-MM-DD` of the viewer's tomorrow. */
export function tomorrow(now: Date): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1)
  const two = (number: number) => String(number).padStart(2, '0')
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`
}

export function emptyDraft(place: { siteId: string | null; timeZone: string }, tomorrow: string): ScheduleDraft {
  return {
    ...place,
    name: '',
    rhythm: 'weekly',
    date: tomorrow,
    time: '06:30',
    days: [1, 2, 3, 4, 5],
    expression: '30 6 * * 1-5',
    ratePerMinute: '60',
    power: 'wake_on_lan',
    targets: [],
  }
}

export function draftOf(schedule: ScheduleDetail, tomorrow: string): ScheduleDraft {
  const { name, siteId, timeZone, power, targets, when, ratePerMinute } = schedule
  const empty = emptyDraft({ siteId, timeZone }, tomorrow)
  return { ...empty, name, power, targets, ratePerMinute: String(ratePerMinute), ...rhythmOf(when) }
}

/** A daily or weekly expression as its parts; any other as it is. */
export function rhythmOf(when: ScheduleWhen): Partial<ScheduleDraft> & { rhythm: Rhythm } {
  if (when.kind === 'once') return { rhythm: 'once', date: when.at.slice(0, 10), time: when.at.slice(11) }
  const { expression } = when
  const match = /^(\d{1,2}) (\d{1,2}) \* \* (\*|[0-6](?:[-,][0-6])*)$/.exec(expression)
  const [, minute = '', hour = '', days = ''] = match ?? []
  if (!match || Number(minute) > 59 || Number(hour) > 23) return { rhythm: 'cron', expression }
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`
  if (days === '*') return { rhythm: 'daily', time, expression }
  const numbers = dayNumbers(days)
  return numbers ? { rhythm: 'weekly', time, days: numbers, expression } : { rhythm: 'cron', expression }
}

function dayNumbers(text: string): number[] | null {
  const found = new Set<number>()
  for (const part of text.split(',')) {
    const [from = 0, until = from, ...more] = part.split('-').map(Number)
    if (more.length > 0 || until < from) return null
    for (let day = from; day <= until; day += 1) found.add(day)
  }
  return weekdays.map(({ number }) => number).filter((number) => found.has(number))
}

export function whenOf(draft: ScheduleDraft): ScheduleWhen {
  const { rhythm, date, time, days, expression } = draft
  if (rhythm === 'once') return { kind: 'once', at: `${date}T${time}` }
  if (rhythm === 'cron') return { kind: 'cron', expression: expression.trim() }
  const [hour, minute] = time.split(':').map(Number)
  return { kind: 'cron', expression: `${minute} ${hour} * * ${rhythm === 'daily' ? '*' : daysText(days)}` }
}

/** `1-5` if they are consecutive, otherwise `1,3,5`. */
function daysText(days: number[]): string {
  const sorted = [...days].sort((a, b) => a - b)
  const [first = 0] = sorted
  const isRow = sorted.length > 2 && sorted.every((day, index) => day === first + index)
  return isRow ? `${first}-${sorted.at(-1)}` : sorted.join(',')
}

/** The API's input, or what is missing. */
export function fieldsOf(draft: ScheduleDraft): { fields: ScheduleFields } | { problem: string } {
  const name = draft.name.trim()
  if (!name) return { problem: 'Enter a name for the schedule.' }
  if (draft.rhythm === 'weekly' && draft.days.length === 0) return { problem: 'Select at least one day of the week.' }
  if (draft.rhythm !== 'cron' && !/^\d{2}:\d{2}(:\d{2})?$/.test(draft.time)) return { problem: 'Select a time of day.' }
  const ratePerMinute = Number(draft.ratePerMinute)
  if (!Number.isInteger(ratePerMinute) || ratePerMinute < 1 || ratePerMinute > 6000)
    return { problem: 'Enter a rate from 1 to 6000 devices per minute.' }
  if (draft.targets.length === 0) return { problem: 'Select at least one device, collection or tag.' }
  const { siteId, power, timeZone } = draft
  const fields = { name, siteId, power, timeZone, ratePerMinute, when: whenOf(draft) }
  return { fields: { ...fields, targets: draft.targets.map(bareTarget) } }
}

export function bareTarget(target: ScheduleTarget): ScheduleFields['targets'][number] {
  if (target.kind === 'device') return { kind: 'device', deviceId: target.deviceId }
  if (target.kind === 'collection') return { kind: 'collection', collectionId: target.collectionId }
  return { kind: 'tag', tag: target.tag }
}

export function targetKey(target: ScheduleTarget): string {
  return JSON.stringify(bareTarget(target))
}

/** Without those that are there already. */
export function withTarget(draft: ScheduleDraft, target: ScheduleTarget): ScheduleDraft {
  const isKnown = draft.targets.some((known) => targetKey(known) === targetKey(target))
  return isKnown ? draft : { ...draft, targets: [...draft.targets, target] }
}
