import { z } from 'zod'
import { count, instant, uuid } from '../rules/scalars.ts'

/** Limits the cost of an organization's evaluation, once a minute. */
export const objectivesMax = 500

const secondsMax = 1_800
const daysMax = 90

const objectiveFields = z.object({
  percent: z
    .number()
    .min(50, 'Choose at least 50 %.')
    .max(99.9, 'Choose at most 99.9 %: no objective of 100 % can be met.')
    .multipleOf(0.1, 'Choose whole tenths of a percent.')
    .describe('This share of the boots is to be ready in time.')
    .meta({ examples: [95] }),
  seconds: z
    .number()
    .int()
    .min(1, 'Choose at least one second.')
    .max(secondsMax, `Choose at most ${secondsMax} s.`)
    .describe('The time from the start of a boot until it is ready.')
    .meta({ examples: [30] }),
  days: z
    .number()
    .int()
    .min(1, 'Choose at least one day.')
    .max(daysMax, `Choose at most ${daysMax} days.`)
    .describe('The time over which the share counts.')
    .meta({ examples: [30] }),
})
const objective = objectiveFields.nullable().describe('Null: there is no objective.')

export const siteObjectiveInput = z.object({ siteId: uuid })
export const collectionObjectiveInput = z.object({ collectionId: uuid })
export const setSiteObjectiveInput = z.object({ siteId: uuid, objective })
export const setCollectionObjectiveInput = z.object({ collectionId: uuid, objective })
export type ObjectiveFields = z.output<typeof objective>

export const objectiveView = z
  .object({
    objective: z
      .object({
        percent: z.number().describe('This share of the boots is to be ready in time.'),
        seconds: count.describe('The time from the start of a boot until it is ready.'),
        days: count.describe('The time over which the share counts.'),
      })
      .nullable()
      .describe('Null: there is no objective.'),
    since: instant.nullable().describe('Boots that started from then on are counted; null without an objective.'),
    boots: count.describe('Boots since then whose result is known. They are counted once a minute.'),
    missed: count.describe('Those that failed, fell silent, or were not ready in time.'),
    budgetLeftPercent: z
      .number()
      .nullable()
      .describe(
        'How much of the boots that may miss the objective are left; negative if it is missed. Null if there are no boots.',
      ),
  })
  .meta({ id: 'Objective' })
export type ObjectiveView = z.infer<typeof objectiveView>
