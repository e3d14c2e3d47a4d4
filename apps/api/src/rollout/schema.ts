import { releaseVersion } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { pageInput, pageOf, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

const wavesMax = 20
const sitesPerWaveMax = 500
/** A week. */
const healthyMinutesMax = 10_080

export const rolloutStates = ['running', 'paused', 'done', 'cancelled'] as const
export const rolloutPauses = ['by_hand', 'failed', 'silent', 'late'] as const
export const rolloutEdgeStates = ['waiting', 'ordered', 'running', 'failed', 'silent', 'late', 'left'] as const
export type RolloutEdgeState = (typeof rolloutEdgeStates)[number]

export const createRolloutInput = z.object({
  farmId: uuid,
  version: releaseVersion,
  waves: z
    .array(z.array(uuid).min(1, 'A wave needs at least one site.').max(sitesPerWaveMax))
    .min(1, 'Select the canary site.')
    .max(wavesMax, `A rollout can have at most ${wavesMax} waves.`)
    .refine((waves) => waves[0]?.length === 1, 'The first wave is the canary: exactly one site.')
    .refine((waves) => new Set(waves.flat()).size === waves.flat().length, 'A site can be in one wave only.')
    .describe('The sites of each wave. The first wave is one site: the canary.'),
  byHand: z.boolean().default(false).describe('A person starts each wave but the first.'),
  healthyMinutes: count
    .max(healthyMinutesMax, 'Enter at most 10,080 minutes, which is a week.')
    .describe('How long all edges of a wave must be healthy before the wave is over.'),
})

export const rolloutGetInput = z.object({ rolloutId: uuid })
export const rolloutChangeInput = z.object({ rolloutId: uuid, revision: seenRevision })
export const resumeRolloutInput = rolloutChangeInput.extend({
  troubled: z
    .enum(['retry', 'leave'])
    .describe('Edges that failed, fell silent or are late: ordered again, or no longer waited for.'),
})
export const rolloutSort = listSort({ createdAt: instantOf('createdAt') }, '-createdAt')
export const rolloutListInput = z.object({
  ...pageInput,
  sort: rolloutSort.input,
  farmId: uuid.optional(),
  state: z.enum(rolloutStates).optional(),
})

const edgeCounts = z.record(z.enum(rolloutEdgeStates), count)
const rolloutSummary = z
  .object({
    id: uuid,
    farmId: uuid,
    farmName: z.string(),
    version: z.string(),
    state: z.enum(rolloutStates),
    wave: count.describe('0 for the canary.'),
    waveCount: count,
    byHand: z.boolean(),
    healthyMinutes: count,
    pause: z
      .object({
        reason: z.enum(rolloutPauses),
        at: instant,
        edge: z
          .object({ id: uuid, name: z.string() })
          .nullable()
          .describe('The edge for which it was paused; null where a person did it, or the edge is gone.'),
      })
      .nullable()
      .describe('Why it is paused; null if it is not.'),
    counts: edgeCounts,
    createdByName: z.string(),
    createdAt: instant,
    endedAt: instant.nullable(),
    revision: count,
  })
  .meta({ id: 'RolloutSummary' })
export type RolloutSummary = z.infer<typeof rolloutSummary>
export const rolloutPage = pageOf(rolloutSummary)

export const rolloutDetail = rolloutSummary
  .extend({
    waveStartedAt: instant.nullable().describe('When the wave in progress started; null until then.'),
    healthyAt: instant
      .nullable()
      .describe('When the wave in progress has been healthy for long enough; null while an edge of it is not.'),
    mayStartNext: z
      .boolean()
      .describe('All edges of the wave run the release, and there is a next one: a person may start it.'),
    waves: z.array(
      z.object({
        sites: z.array(z.object({ id: uuid, name: z.string() })).describe('Sites in the trash are left out.'),
        counts: edgeCounts,
      }),
    ),
  })
  .meta({ id: 'Rollout' })
export type RolloutDetail = z.infer<typeof rolloutDetail>

export const rolloutEdgesInput = z.object({
  ...pageInput,
  rolloutId: uuid,
  state: z.enum(rolloutEdgeStates).optional(),
})
const rolloutEdge = z
  .object({
    edgeId: uuid,
    name: z.string(),
    siteId: uuid,
    siteName: z.string(),
    wave: count,
    state: z.enum(rolloutEdgeStates),
    cause: z.string().nullable().describe('Why it failed, is late or was left, a word such as `ended` or `revoked`.'),
    progress: z
      .string()
      .nullable()
      .describe(
        'What the edge says of its order: `fetching`, `waiting`, `probation`, `healthy`, `failed`; null: nothing yet.',
      ),
    formerVersion: z.string().nullable().describe('The version that it ran when it was ordered; null until then.'),
    agentVersion: z.string().describe('The version that it runs now.'),
    orderedAt: instant.nullable(),
    healthySince: instant.nullable(),
  })
  .meta({ id: 'RolloutEdge' })
export type RolloutEdgeView = z.infer<typeof rolloutEdge>
export const rolloutEdgePage = pageOf(rolloutEdge)
