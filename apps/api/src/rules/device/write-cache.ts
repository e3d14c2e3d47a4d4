import { writeCacheClasses, writeCacheStates } from '@bootfarm/proto/uplink'
import { z } from 'zod'

/** From here on the dashboard warns, in percent of the write cache's size. */
export const writeCacheWarningPercent = 80
export const writeCacheCriticalPercent = 95

const writeCacheLevels = ['ok', 'warning', 'critical', 'full'] as const
/** Alarm thresholds, ascending. */
export const writeCacheMarks = [
  { percent: writeCacheWarningPercent, level: 'warning' },
  { percent: writeCacheCriticalPercent, level: 'critical' },
  { percent: 100, level: 'full' },
] as const

/** The location and state of the write cache, as stored with a boot. */
const writeCacheHeld = z.object({
  class: z.enum(writeCacheClasses).default('device_ram'),
  state: z.enum(['ok', ...writeCacheStates]).default('ok'),
  fullInSeconds: z.number().int().nonnegative().nullable().default(null),
})

/** A device's last reported write cache. */
export const writeCacheView = z.object({
  class: writeCacheHeld.shape.class.unwrap(),
  state: writeCacheHeld.shape.state
    .unwrap()
    .describe(
      '`read_only`: full, and the device continues; `stopped`: full, and its disk is halted; `lost`: halted as well, because the writes are gone.',
    ),
  fullInSeconds: writeCacheHeld.shape.fullInSeconds
    .unwrap()
    .describe('The rate in the minutes before that report; null if it does not fill, or the rate is unknown.'),
  usedBytes: z.number().int().nonnegative(),
  sizeBytes: z.number().int().positive(),
  percent: z.number().int().min(0).max(100).describe('Rounded down, so that 100 means full.'),
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
