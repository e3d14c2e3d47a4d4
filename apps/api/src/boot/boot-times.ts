/** Times of the boots of one span, in µs from start to ready; null if none became ready. */
export interface BootTimes {
  readyCount: number
  failedCount: number
  /** Power-ons that the device did not answer. */
  noResponseCount: number
  generatedCount: number
  p50Us: number | null
  p95Us: number | null
}

/**
 * A boot's instant from the µs since its begin: no number of a report reaches beyond the years that a Date can hold.
 */
export function instantAt(startedAt: Date, atUs: number): string {
  return new Date(startedAt.getTime() + Math.floor(atUs / 1000)).toISOString()
}

const dayMs = 86_400_000
const noBoots: BootTimes = {
  readyCount: 0,
  failedCount: 0,
  noResponseCount: 0,
  generatedCount: 0,
  p50Us: null,
  p95Us: null,
}

/** The last `count` UTC days up to that of `now`, as YYYY-MM-DD, oldest first. */
export function daysBefore(now: Date, count: number): string[] {
  return Array.from({ length: count }, (_, index) =>
    new Date(now.getTime() - (count - 1 - index) * dayMs).toISOString().slice(0, 10),
  )
}

/** One row for each day; empty for days without rows. */
export function fillDays(days: string[], rows: (BootTimes & { day: string })[]): (BootTimes & { day: string })[] {
  const byDay = new Map(rows.map((row) => [row.day, row]))
  return days.map((day) => byDay.get(day) ?? { day, ...noBoots })
}
