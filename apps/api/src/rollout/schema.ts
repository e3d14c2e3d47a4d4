import { releaseVersion } from '@bootfarm/proto/uplink'
import { z } from 'zod'
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
  /** The sites of each wave. The first wave is one site: the canary. */
  waves: z
    .array(z.array(uuid).min(1, 'A wave needs at least one site.').max(sitesPerWaveMax))
    .min(1, 'Select the canary site.')
    .max(wavesMax, `A rollout can have at most ${wavesMax} waves.`)
    .refine((waves) => waves[0]?.length === 1, 'The first wave is the canary: exactly one site.')
    .refine((waves) => new Set(waves.flat()).size === waves.flat().length, 'A site can be in one wave only.'),
  /** A person starts each wave but the first. */
  byHand: z.boolean().default(false),
  /** How long all edges of a wave must be healthy before the wave is over. */
  healthyMinutes: count.max(healthyMinutesMax, 'Enter at most 10,080 minutes, which is a week.'),
})

export const rolloutGetInput = z.object({ rolloutId: uuid })
export const rolloutChangeInput = z.object({ rolloutId: uuid, revision: seenRevision })
export const resumeRolloutInput = rolloutChangeInput.extend({
  /** Edges that failed, fell silent or are late: ordered again, or no longer waited for. */
  troubled: z.enum(['retry', 'leave']),
})
export const rolloutListInput = z.object({
  ...pageInput,
  farmId: uuid.optional(),
  state: z.enum(rolloutStates).optional(),
})

const edgeCounts = z.record(z.enum(rolloutEdgeStates), count)
const rolloutSummary = z.object({
  id: uuid,
  farmId: uuid,
  farmName: z.string(),
  version: z.string(),
  state: z.enum(rolloutStates),
  /** 0 for the canary. */
  wave: count,
  waveCount: count,
  byHand: z.boolean(),
  healthyMinutes: count,
  /** Why it is paused; null if it is not. */
  pause: z
    .object({
      reason: z.enum(rolloutPauses),
      at: instant,
      /** The edge for which it was paused; null where a person did it, or the edge is gone. */
      edge: z.object({ id: uuid, name: z.string() }).nullable(),
    })
    .nullable(),
  counts: edgeCounts,
  createdByName: z.string(),
  createdAt: instant,
  endedAt: instant.nullable(),
  revision: count,
})
export type RolloutSummary = z.infer<typeof rolloutSummary>
export const rolloutPage = pageOf(rolloutSummary)

export const rolloutDetail = rolloutSummary.extend({
  /** When the wave in progress started; null until then. */
  waveStartedAt: instant.nullable(),
  /** When the wave in progress has been healthy for long enough; null while an edge of it is not. */
  healthyAt: instant.nullable(),
  /** All edges of the wave run the release, and there is a next one: a person may start it. */
  mayStartNext: z.boolean(),
  waves: z.array(
    z.object({
      /** Sites in the trash are left out. */
      sites: z.array(z.object({ id: uuid, name: z.string() })),
      counts: edgeCounts,
    }),
  ),
})
export type RolloutDetail = z.infer<typeof rolloutDetail>

export const rolloutEdgesInput = z.object({
  ...pageInput,
  rolloutId: uuid,
  state: z.enum(rolloutEdgeStates).optional(),
})
const rolloutEdge = z.object({
  edgeId: uuid,
  name: z.string(),
  siteId: uuid,
  siteName: z.string(),
  wave: count,
  state: z.enum(rolloutEdgeStates),
  /** Why it failed, is late or was left, a word such as `ended` or `revoked`. */
  cause: z.string().nullable(),
  /** What the edge says of its order: `fetching`, `waiting`, `probation`, `healthy`, `failed`; null: nothing yet. */
  progress: z.string().nullable(),
  /** The version that it ran when it was ordered; null until then. */
  formerVersion: z.string().nullable(),
  /** The version that it runs now. */
  agentVersion: z.string(),
  orderedAt: instant.nullable(),
  healthySince: instant.nullable(),
})
export type RolloutEdgeView = z.infer<typeof rolloutEdge>
export const rolloutEdgePage = pageOf(rolloutEdge)
