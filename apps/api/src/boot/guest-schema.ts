import { type GuestReport, guestStepGroups } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { instantAt } from './boot-times.ts'

const microseconds = z.number().int()

/** What a device said of itself: its words are untrusted text. */
export const guestView = z.object({
  /** Where the kernel's clock began, µs since the boot's begin; concluded by the edge. */
  kernelStartUs: microseconds,
  /** By begin. Steps of the firmware begin before the boot's first packet, below 0. */
  steps: z.array(
    z.object({
      group: z.enum(guestStepGroups),
      name: z.string(),
      /** µs since the boot's begin, as the phases'. */
      startUs: microseconds,
      durationUs: z.number().int().nonnegative(),
    }),
  ),
  /** When the device said how full its write cache is; null where it never did. */
  writeCacheAt: z.iso.datetime().nullable(),
})
export type GuestView = z.infer<typeof guestView>

/** @param startedAt the boot's begin */
export function guestViewOf(guest: GuestReport, startedAt: Date): GuestView {
  const { kernelStartUs, steps, writeCache } = guest
  return {
    kernelStartUs,
    steps: steps
      .map((step) => ({ ...step, startUs: exact(kernelStartUs + step.startUs) }))
      .sort((a, b) => a.startUs - b.startUs),
    writeCacheAt: writeCache ? instantAt(startedAt, writeCache.atUs) : null,
  }
}

/** Two numbers of a device may add up to more than JSON keeps exact. */
function exact(us: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, us))
}
