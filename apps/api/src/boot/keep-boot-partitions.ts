import type { SystemContext } from '../context/service-context.ts'
import { firstHourKept } from '../rules/boot-rollup.ts'
import { dayMs, dayText, utcDay } from '../rules/utc-day.ts'
import type { BootRetention } from './boot-retention.ts'

/** Partitions are created so many days ahead: the job may fail for as long. */
const daysAhead = 3
const keysAtOnceMax = 5_000

/** Makes the partitions of today and the next days. */
export async function makeBootPartitions({ db, clock }: SystemContext): Promise<void> {
  const first = utcDay(clock())
  const last = new Date(first.getTime() + daysAhead * dayMs)
  await db.$executeRaw`select ensure_boot_partitions(${dayText(first)}::date, ${dayText(last)}::date)`
}

/**
 * Drops the partitions of days that are past their retention, of all organizations, then what named their boots.
 * Rollups of days stay. A partition that is in use is left for the next time.
 */
export async function dropOldBoots(
  { db, clock }: SystemContext,
  { summaryDays, detailDays }: BootRetention,
): Promise<void> {
  const now = clock()
  const firstKept = (days: number) => dayText(new Date(utcDay(now).getTime() - days * dayMs))
  const summariesFrom = firstKept(summaryDays)
  await db.$executeRaw`select drop_boot_partitions('boot_detail', ${firstKept(Math.min(detailDays, summaryDays))}::date)`
  await db.$executeRaw`select drop_boot_partitions('boot', ${summariesFrom}::date)`
  for (;;) {
    const [row] = await db.$queryRaw<{ forgotten: number }[]>`
      select forget_dropped_boots(${summariesFrom}::date, ${keysAtOnceMax}) as forgotten`
    if (!row || row.forgotten < keysAtOnceMax) break
  }
  await db.$executeRaw`select forget_hour_rollups(${firstHourKept(now)})`
}
