export const dayMs = 86_400_000

/** Midnight UTC: how a day is kept in the database. */
export function utcDay(at: Date): Date {
  return new Date(Math.floor(at.getTime() / dayMs) * dayMs)
}

/** YYYY-MM-DD. */
export function dayText(day: Date): string {
  return day.toISOString().slice(0, 10)
}
