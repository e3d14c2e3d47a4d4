import { z } from 'zod'
import { timeOfDay } from '../placement/schema.ts'
import { seenRevision } from '../rules/object-fields.ts'
import { instant, uuid } from '../rules/scalars.ts'

export const cleaningModes = ['off', 'after_deletions', 'daily'] as const

const cleaningWindow = z
  .object({
    from: timeOfDay.describe('It starts from this time of day on.'),
    to: timeOfDay
      .describe('It does not start from then on; earlier than `from`: on the next day.')
      .meta({ examples: ['06:00'] }),
  })
  .refine(({ from, to }) => from !== to, 'The window ends when it begins. Leave it out for the whole day.')

const settings = {
  mode: z
    .enum(cleaningModes)
    .describe(
      '`after_deletions`: in the next window after something was deleted in the store; `daily`: in each; `off`: only when somebody starts it.',
    ),
  window: cleaningWindow
    .nullable()
    .describe("When it starts, by the clocks of the site's time zone; null: at any time, at most once in 20 hours."),
}

export const cleaningGetInput = z.object({ edgeId: uuid })
export const cleaningSetInput = z.object({
  edgeId: uuid,
  revision: seenRevision.describe("The edge's."),
  mode: settings.mode,
  window: settings.window,
})
export const cleaningView = z
  .object({
    revision: seenRevision.describe("The edge's."),
    mode: settings.mode,
    window: z
      .object({ from: z.string().describe('HH:MM.'), to: z.string().describe('HH:MM.') })
      .nullable()
      .describe('Null: at any time.'),
    isDue: z.boolean().describe('It starts in the next window.'),
    last: z
      .object({
        jobId: uuid,
        state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
        endedAt: instant.nullable().describe('Null: it has not ended.'),
        untrusted: z
          .object({ message: z.string().nullable() })
          .describe("How much it has freed, or why it failed, in the edge's words."),
      })
      .nullable()
      .describe('The last job that freed space; null: none in the last 30 days.'),
  })
  .meta({ id: 'Cleaning' })
export type CleaningView = z.infer<typeof cleaningView>
