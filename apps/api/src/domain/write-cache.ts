import { z } from 'zod'

/** From here on the dashboard warns, in percent of the write cache's size. */
export const writeCacheWarningPercent = 80
export const writeCacheCriticalPercent = 95

export const writeCacheLevels = ['ok', 'warning', 'critical', 'full'] as const

/** The write cache in a device's RAM as the device last said. */
export const writeCacheView = z.object({
  usedBytes: z.number().int().nonnegative(),
  sizeBytes: z.number().int().positive(),
  /** Rounded down, so that 100 means full. */
  percent: z.number().int().min(0).max(100),
  level: z.enum(writeCacheLevels),
})
export type WriteCacheView = z.infer<typeof writeCacheView>

/** @param sizeBytes at least 1 */
export function writeCacheOf(usedBytes: number, sizeBytes: number): WriteCacheView {
  const percent = Math.min(100, Math.floor((usedBytes * 100) / sizeBytes))
  return { usedBytes, sizeBytes, percent, level: levelOf(percent) }
}

function levelOf(percent: number): WriteCacheView['level'] {
  if (percent >= 100) return 'full'
  if (percent >= writeCacheCriticalPercent) return 'critical'
  return percent >= writeCacheWarningPercent ? 'warning' : 'ok'
}
