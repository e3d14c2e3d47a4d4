import { writeCacheClasses, writeCacheStates } from '@bootfarm/proto/uplink'
import { z } from 'zod'

/** From here on the dashboard warns, in percent of the write cache's size. */
export const writeCacheWarningPercent = 80
export const writeCacheCriticalPercent = 95

const writeCacheLevels = ['ok', 'warning', 'critical', 'full'] as const
/** Where an alarm is given, rising. */
export const writeCacheMarks = [
  { percent: writeCacheWarningPercent, level: 'warning' },
  { percent: writeCacheCriticalPercent, level: 'critical' },
  { percent: 100, level: 'full' },
] as const

/** Where the write cache is and what has become of it, as kept with a boot. */
const writeCacheHeld = z.object({
  class: z.enum(writeCacheClasses).default('device_ram'),
  state: z.enum(['ok', ...writeCacheStates]).default('ok'),
  fullInSeconds: z.number().int().nonnegative().nullable().default(null),
})

/** A device's write cache as it was last said. */
export const writeCacheView = z.object({
  class: writeCacheHeld.shape.class.unwrap(),
  /**
   * `read_only`: full, and the device goes on; `stopped`: full, and its disk stands still; `lost`: so too, since what
   * was written is gone.
   */
  state: writeCacheHeld.shape.state.unwrap(),
  /** As it filled in the minutes before that was said; null where it does not fill, or nobody knows. */
  fullInSeconds: writeCacheHeld.shape.fullInSeconds.unwrap(),
  usedBytes: z.number().int().nonnegative(),
  sizeBytes: z.number().int().positive(),
  /** Rounded down, so that 100 means full. */
  percent: z.number().int().min(0).max(100),
  level: z.enum(writeCacheLevels),
})
export type WriteCacheView = z.infer<typeof writeCacheView>

/** @param sizeBytes at least 1 @param held `write_cache_held` of its boot */
export function writeCacheOf(
  { usedBytes, sizeBytes }: { usedBytes: number; sizeBytes: number },
  held: unknown,
): WriteCacheView {
  const percent = Math.min(100, Math.floor((usedBytes * 100) / sizeBytes))
  return { ...writeCacheHeld.parse(held ?? {}), usedBytes, sizeBytes, percent, level: levelOf(percent) }
}

function levelOf(percent: number): WriteCacheView['level'] {
  return writeCacheMarks.findLast((mark) => percent >= mark.percent)?.level ?? 'ok'
}
