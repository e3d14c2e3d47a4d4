import type { DbTransaction } from '@bootfarm/db'
import { dayText, utcDay } from '../../rules/utc-day.ts'

/**
 * Creates the partitions of `now`'s day if they are missing: the job creates them ahead, and a day that it missed must
 * not fail a report.
 */
export async function ensureBootPartitions(db: DbTransaction, now: Date): Promise<void> {
  const today = dayText(utcDay(now))
  await db.$executeRaw`select ensure_boot_partitions(${today}::date, ${today}::date)`
}

/** Returns those of these days, as YYYY-MM-DD, whose details are still kept. */
export async function daysWithDetails(db: DbTransaction, days: string[]): Promise<Set<string>> {
  const rows = await db.$queryRaw<{ day: string }[]>`
    select of_day::text as day from boot_partitions_of(${days}::date[]) where has_details`
  return new Set(rows.map(({ day }) => day))
}
