/** Instants in the viewer's zone. English month names in every place, since the pages are in English. */

const locale = 'en-GB'

/** Formats are slow to make, and a list needs the same few for each row. */
const formats = new Map<string, Intl.DateTimeFormat>()
/** Several for each zone that a page shows; the server shows each of its viewers another one. */
const formatsMax = 500

function format(instant: Date, options: Intl.DateTimeFormatOptions): string {
  const key = JSON.stringify(options)
  let made = formats.get(key)
  if (!made) {
    if (formats.size >= formatsMax) formats.clear()
    made = new Intl.DateTimeFormat(locale, options)
    formats.set(key, made)
  }
  return made.format(instant)
}

/**
 * `14:03:22` today, `18 Nov 14:03` this year, `18 Nov 2025` before.
 * @param timeZone an IANA name; the viewer's zone without it
 */
export function formatInstant(at: Date, now: Date, timeZone?: string): string {
  const zone = timeZone === undefined ? {} : { timeZone }
  const day = (instant: Date) => format(instant, zone)
  if (day(at) === day(now))
    return format(at, { ...zone, hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' })
  const year = (instant: Date) => format(instant, { ...zone, year: 'numeric' })
  const dayAndMonth = format(at, { ...zone, day: 'numeric', month: 'short' })
  if (year(at) !== year(now)) return `${dayAndMonth} ${year(at)}`
  const minutes = format(at, { ...zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return `${dayAndMonth} ${minutes}`
}

/** `14:00`, or where a day begins or the axis has days alone, `18 Nov`: a mark on an axis of time. */
export function formatAxisTime(at: Date, hasDaysAlone: boolean): string {
  const minutes = format(at, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return hasDaysAlone || minutes === '00:00' ? format(at, { day: 'numeric', month: 'short' }) : minutes
}

/** Day, time with seconds and the zone's short name, for pages that show one instant. */
export function formatInstantInFull(at: Date, timeZone?: string): string {
  return format(at, {
    ...(timeZone === undefined ? {} : { timeZone }),
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  })
}

/** `2026-11-18 14:03:22 UTC`. */
export function formatUtc(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `just now`, `12 s ago`, `5 min ago`, `3 h ago`, `2 d ago`; clocks that disagree never give a negative age. */
export function formatAge(at: Date, now: Date): string {
  const seconds = Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000))
  if (seconds < 5) return 'just now'
  if (seconds < 60) return `${seconds}\u00a0s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}\u00a0min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}\u00a0h ago`
  return `${Math.floor(seconds / 86_400)}\u00a0d ago`
}

/** The day of a daily rollup, `2026-11-18`, as `Wed 18 Nov`; it names a day, not an instant, so no zone moves it. */
export function formatDay(day: string): string {
  return format(new Date(`${day}T00:00:00Z`), { timeZone: 'UTC', weekday: 'short', day: 'numeric', month: 'short' })
}

/** `2026-11-20T12:00`, as a field of an instant takes it. */
export function localMinute(at: Date, timeZone?: string): string {
  const parts = new Intl.DateTimeFormat('sv-SE', {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    ...(timeZone ? { timeZone } : {}),
  }).format(at)
  return parts.replace(' ', 'T')
}

/** The instant of such a text in the browser's zone; null before 2000, when a year is still being typed. */
export function instantOfMinute(text: string): string | null {
  const at = new Date(text)
  return at.getFullYear() >= 2000 && at.getFullYear() <= 9999 ? at.toISOString() : null
}
