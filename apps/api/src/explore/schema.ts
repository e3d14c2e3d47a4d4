import { bootPhases } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import { bootFilterInput } from '../boot/schema.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { attributeNames } from './attributes.ts'
import { stepsMax } from './figures.ts'
import { sampleMax } from './read-sample.ts'

/** Longer spans read too many days' boots for one answer. */
export const spanDaysMax = 92
export const spanDaysDefault = 7
/** As many as a day has hours. */
export const groupsShown = 24
/** Lines of more groups are no lines that a person tells apart. */
export const groupLines = 3
export const rankedShown = 30
export const promotionsShown = 100

export const filters = bootFilterInput.omit({ sort: true })
const attribute = z.enum(attributeNames)

export const exploreInput = filters.extend({
  by: attribute.optional().describe('Groups the boots by this attribute, too.'),
})

const { durationUsMin, durationUsMax } = bootFilterInput.shape

export const differencesInput = filters.extend({
  boxSince: instant.describe('With the next: the boots of the box started then or later.'),
  boxUntil: instant.describe('And before this.'),
  boxDurationUsMin: durationUsMin.describe('They took as long or longer; together with the next.'),
  boxDurationUsMax: durationUsMax.describe('They took as long or shorter.'),
})

const us = count.nullable()
export const sampleView = z.object({
  bootCount: count.describe('How many boots were read.'),
  share: z
    .number()
    .describe(
      `The share of all boots of the filter that these are, by random ids. 1: all. At most about ${sampleMax}.`,
    ),
  estimatedCount: count.describe('About how many boots the filter has; exact if `share` is 1.'),
})

export const figuresView = z.object({
  bootCount: count.describe('Counts are of the sample: divide by `share`.'),
  readyCount: count.describe('Boots that became ready.'),
  failedCount: count.describe('Failed or timed out.'),
  p50Us: us.describe('Of ready boots, as p95 and p99: half of them were as quick.'),
  p95Us: us.describe('95 in 100 were as quick.'),
  p99Us: us.describe('99 in 100 were as quick.'),
  phasesUs: z.array(count).describe('Mean over ready boots of each of `phases`, then of time in no phase.'),
})

const value = z.string().nullable().describe('Null: not known.')
const label = z.string().nullable().describe('The name of what the value is the id of; null: it is gone, or none.')

export const exploreView = z
  .object({
    since: instant,
    until: instant,
    sample: sampleView.describe('What the figures are made of.'),
    phases: z.array(z.enum(bootPhases)).describe('Names of the first values of `phasesUs`, in their order.'),
    stepMs: count.describe('Length of a step.'),
    steps: z
      .array(figuresView.extend({ at: instant.describe('Start of the step; the first may begin before `since`.') }))
      .describe(`Without gaps; at most ${stepsMax + 1}.`),
    durationEdgesUs: z.array(count).describe('Lower edges of the bins of duration; each ends where the next begins.'),
    cells: z
      .object({
        steps: z.array(count).describe('Index into `steps`.'),
        bins: z.array(count).describe('Index into `durationEdgesUs`.'),
        counts: z.array(count).describe('Boots of the sample.'),
      })
      .describe('Boots that are over, by step and duration. Columns: everything of one index is of one cell.'),
    total: figuresView.describe('Figures of all boots of the sample.'),
    groups: z
      .array(
        figuresView.extend({
          value,
          label,
          p50ByStepUs: z.array(us).nullable().describe(`By step; only of the ${groupLines} largest groups.`),
          p95ByStepUs: z.array(us).nullable().describe('The same for the 95th percentile.'),
        }),
      )
      .describe(`By \`by\`, the largest first; at most ${groupsShown}.`),
    otherGroups: count.describe('Groups beyond these.'),
    promotions: z
      .array(
        z.object({
          at: instant.describe('When it became the production version.'),
          vdiskId: uuid,
          vdiskName: z.string().describe('The name at that time.'),
          versionId: uuid,
          versionNumber: count.describe('Number of the version in its vDisk.'),
        }),
      )
      .describe(
        `Versions that became the production version in the span, the newest first; at most ${promotionsShown}.`,
      ),
  })
  .meta({ id: 'Exploration' })
export type ExploreView = z.infer<typeof exploreView>

export const differencesView = z
  .object({
    inside: sampleView.describe('The boots of the box.'),
    outside: sampleView.describe('The other boots of the filter.'),
    comparedCount: count.describe('Values that were compared; the intervals allow for as many.'),
    values: z
      .array(
        z.object({
          attribute: attribute.describe('The attribute that has the value.'),
          value,
          label,
          insideCount: count.describe('Boots of the sample in the box that have it.'),
          outsideCount: count.describe('Boots of the sample outside that have it.'),
          oddsRatio: z.number().describe('Odds of the value in the box over those outside.'),
          low: z.number().describe('95 % interval of it, for all compared values together.'),
          high: z.number().describe('Upper end of the interval.'),
          isClear: z.boolean().describe('The interval is above 1.'),
        }),
      )
      .describe(`More frequent in the box than outside, the surest first; at most ${rankedShown}.`),
  })
  .meta({ id: 'BootDifferences' })
export type DifferencesView = z.infer<typeof differencesView>
