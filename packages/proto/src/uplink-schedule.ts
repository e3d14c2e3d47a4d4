import { z } from 'zod'
import { count, untrustedText, uuid } from './uplink-values.ts'

/** Actions that an edge runs at instants that the control plane has computed; see UPLINK.md, "Schedules". */

/** An edge refuses a state with more. */
export const schedulesMax = 256
export const scheduleInstantsMax = 1024
/** Limits all schedules of a state together. */
export const stateInstantsMax = 32_768
export const stateTargetsMax = 131_072
export const ratePerMinuteMax = 6000

/** How a device is switched on: by a magic packet, by the command that the edge was started with, or by both. */
export const powerMethods = ['wake_on_lan', 'hook', 'both'] as const

export const scheduleOrder = z.object({
  id: uuid,
  /** An edge reports a run of an unknown action as `missed`. */
  action: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  power: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  /** Devices of the whole site, evenly spaced. */
  ratePerMinute: count.min(1).max(ratePerMinuteMax),
  /** Indexes into the state's `devices`, in the order in which they are started. */
  devices: z.array(count),
  /** In UTC, ascending, without duplicates. */
  instants: z
    .array(count)
    .max(scheduleInstantsMax)
    .refine((instants) => instants.every((at, index) => index === 0 || at > (instants[index - 1] ?? at)), {
      message: 'ascending, none twice',
    }),
})
export type ScheduleOrder = z.infer<typeof scheduleOrder>

/** The result of a device in a run at this edge. */
export const scheduleResults = ['sent', 'hook_failed', 'disabled', 'booting_already', 'late'] as const

/** A report holds at most this many. */
export const scheduleDevicesPerReportMax = 24

/**
 * The progress of a run at an edge. A run has a `running` report for every few devices and one that ends it; only the
 * edge that started a device names it, once.
 */
export const scheduleRunReport = z.object({
  scheduleId: uuid,
  instantUnixMs: count,
  state: z.enum(['running', 'done', 'missed', 'stopped']),
  /** For a missed run: `late`, `action_unknown`, `too_many`. */
  reason: z
    .string()
    .regex(/^[a-z_]{1,32}$/)
    .optional(),
  /** `missed` stands for all instants of the schedule from `instantUnixMs` to this one. */
  untilUnixMs: count.optional(),
  /** By the edge's clock. */
  startedUnixMs: count.optional(),
  devices: z
    .array(
      z.object({
        deviceId: uuid,
        atUnixMs: count,
        result: z.enum(scheduleResults),
        /** The command's message, or why it could not run. */
        text: untrustedText.optional(),
      }),
    )
    .max(scheduleDevicesPerReportMax),
})
export type ScheduleRunReport = z.infer<typeof scheduleRunReport>
