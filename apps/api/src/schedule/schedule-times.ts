import { Cron } from 'croner'

/**
 * Computes when a schedule runs. Zones and DST end here: edges get UTC instants only. A fixed local time that the
 * clocks skip in spring runs at the moment after the gap (02:30 runs at 03:00); one that occurs twice in autumn runs
 * the first time only. Expressions for every so many minutes or hours follow elapsed time instead: none of their
 * instants is skipped or repeated.
 */

export type ScheduleWhen =
  | { kind: 'once' /** `YYYY-MM-DDTHH:MM` or with seconds, in the zone. */; at: string }
  | { kind: 'cron'; expression: string }

/**
 * The effect of DST on an instant: its local time is skipped that day; it occurs twice and this is the first or the
 * second.
 */
type DstNote = 'moved' | 'first_of_two' | 'second_of_two'

interface PlannedInstant {
  at: Date
  note: DstNote | null
}

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-GB', { timeZone: name }).resolvedOptions().timeZone.length > 0
  } catch {
    return false
  }
}

/** Null if the times can be computed, otherwise a sentence for people. */
export function problemOf(when: ScheduleWhen, timeZone: string): string | null {
  try {
    if (openCron(when, timeZone).nextRun(farPast)) return null
    const what = when.kind === 'cron' ? 'This expression' : 'This time'
    return `${what} names a day that does not exist, such as 30 February. It would never run.`
  } catch (error) {
    const detail = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : ''
    if (when.kind === 'once') return 'Enter a date and a time of day, for example 2026-12-24T06:30.'
    return `A cron expression has five fields (minute, hour, day of month, month, day of week), for example 30 6 * * 1-5. ${detail}`.trim()
  }
}

/** Returns at most `limit` instants after `from`, in order. */
export function instantsAfter(
  { when, timeZone }: { when: ScheduleWhen; timeZone: string },
  from: Date,
  limit: number,
): Date[] {
  const cron = openCron(when, timeZone)
  if (when.kind === 'cron') return cron.nextRuns(limit, from)
  const at = cron.nextRun(farPast)
  return at && at.getTime() > from.getTime() ? [at] : []
}

/** Like `instantsAfter`, with the effect of DST on each. */
export function plannedInstants(
  schedule: { when: ScheduleWhen; timeZone: string },
  from: Date,
  limit: number,
): PlannedInstant[] {
  const cron = openCron(schedule.when, schedule.timeZone)
  return instantsAfter(schedule, from, limit).map((at) => ({ at, note: noteOf(schedule, cron, at) }))
}

function noteOf({ when, timeZone }: { when: ScheduleWhen; timeZone: string }, cron: Cron, at: Date): DstNote | null {
  const local = localText(at, timeZone)
  const isAsked = when.kind === 'cron' ? cron.match(at) : local.startsWith(when.at.slice(0, 16))
  if (!isAsked) return 'moved'
  // Clocks have gone back by half an hour, an hour or two.
  for (const minutes of [30, 60, 120]) {
    const shift = minutes * 60_000
    if (localText(new Date(at.getTime() + shift), timeZone) === local) return 'first_of_two'
    if (localText(new Date(at.getTime() - shift), timeZone) === local) return 'second_of_two'
  }
  return null
}

/** `YYYY-MM-DDTHH:MM` as clocks of the zone show it. */
export function localText(at: Date, timeZone: string): string {
  return formatOf(timeZone).format(at).replace(' ', 'T')
}

const formats = new Map<string, Intl.DateTimeFormat>()
const formatsMax = 600

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known) return known
  if (formats.size >= formatsMax) formats.clear()
  const made = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  formats.set(timeZone, made)
  return made
}

const farPast = new Date(0)

function openCron(when: ScheduleWhen, timeZone: string): Cron {
  if (when.kind === 'cron') return new Cron(when.expression, { timezone: timeZone, mode: '5-part', paused: true })
  const [year, month, day, hour, minute, second = 0] = when.at.split(/[-T:]/).map(Number)
  // An expression makes it follow the same rule as any other fixed time.
  return new Cron(`${second} ${minute} ${hour} ${day} ${month} * ${year}`, {
    timezone: timeZone,
    mode: '7-part',
    paused: true,
  })
}
