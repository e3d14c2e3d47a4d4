import { z } from 'zod'

export const consoleLinesMax = 2000
export const consoleBytesMax = 200 * 1024

export const bootConsoleInput = z.object({
  bootId: z.uuid(),
  /** `next` of the answer before; from the boot's begin without it. */
  after: z.number().int().nonnegative().optional(),
})

/** Null where no console is kept for the boot's device. */
export const bootConsole = z
  .object({
    lines: z.array(
      z.object({
        /** Milliseconds since the boot's begin; below 0 for what the firmware wrote before its first packet. */
        atMs: z.number().int(),
        /** Untrusted, without control characters. */
        text: z.string(),
      }),
    ),
    next: z.number().int().nonnegative(),
    /** There is more of this boot behind `next` now: an answer is bounded. */
    more: z.boolean(),
  })
  .nullable()
export type BootConsole = z.infer<typeof bootConsole>
