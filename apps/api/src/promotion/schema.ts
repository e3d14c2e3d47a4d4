import { z } from 'zod'
import { waitReasons } from '../placement/public.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { changedVersion, ofVdisk, ofVersion } from '../vdisk/version-schema.ts'

const needsWait = {
  path: ['waitUntil'],
  message: 'Only a step that waits for edges has an end of the wait: leave it out, or set waitForPlacement.',
}
const waitUntil = instant.optional().describe('It is given up then, at most 31 days ahead. Absent: in seven days.')
/** Its fields exclude each other, so that no example can be made field by field. */
const waiting = { vdiskRevision: 3, waitForPlacement: true, waitUntil: '2027-01-15T18:00:00Z' }
export const promoteInput = z
  .object({
    ...ofVersion,
    releaseAt: instant.optional().describe('Absent: now, or when edges hold the version.'),
    waitForPlacement: z
      .boolean()
      .optional()
      .describe(
        'Whether the version becomes the default only once every edge that is to hold it does. Absent: it does, except with `releaseAt`.',
      ),
    waitUntil,
  })
  .refine(({ releaseAt, waitForPlacement, waitUntil }) => !releaseAt || (!waitForPlacement && !waitUntil), {
    path: ['releaseAt'],
    message: 'At a set time edges switch by their own clocks: such a release cannot wait for edges that lack it.',
  })
  .refine(({ waitForPlacement, waitUntil }) => !waitUntil || waitForPlacement !== false, needsWait)
  .meta({ examples: [waiting] })
export const revertInput = z
  .object({
    ...ofVersion,
    waitForPlacement: z
      .boolean()
      .default(false)
      .describe('Whether the version becomes the default only once every edge that is to hold it does.'),
    waitUntil,
  })
  .refine(({ waitForPlacement, waitUntil }) => !waitUntil || waitForPlacement, needsWait)
  .meta({ examples: [waiting] })
export const promotionInput = z.object({ vdiskId: uuid })
export const cancelPromotionInput = z.object(ofVdisk)

export const promotedVersion = changedVersion
  .extend({
    isWaiting: z
      .boolean()
      .describe('Edges lack the version: it becomes the default when they hold it. `version.promotion` has more.'),
  })
  .meta({ id: 'PromotedVersion' })
export type PromotedVersion = z.infer<typeof promotedVersion>

const promotionView = z
  .object({
    versionId: uuid,
    number: count,
    step: z.enum(['promote', 'revert']).describe('What happens to the version when edges hold it.'),
    since: instant.describe('When it was asked for.'),
    until: instant.describe('It is given up then.'),
    askedBy: z.string(),
    givenUp: z
      .object({ at: instant, reason: z.string() })
      .nullable()
      .describe('Null: it waits. It is shown until it is cancelled, or another version becomes the default.'),
    heldCount: count.describe('Count of edges that hold the version.'),
    lackingCount: count.describe('Count of edges that are to hold it and do not, also of those that you may not see.'),
    lacking: z
      .array(
        z.object({
          edgeId: uuid,
          edgeName: z.string(),
          siteName: z.string(),
          isOnline: z.boolean().describe('It was heard lately.'),
          state: z.enum(['damaged', 'fetching', 'lacks']).describe('Where the edge’s copy is.'),
          waitsFor: z.enum(waitReasons).nullable().describe('Why nothing is fetched now, as in `copies`.'),
          retryAt: instant.nullable().describe('When it is tried again, after a failure or a cancellation.'),
          progressBytes: count,
          totalBytes: count.describe('0: not known yet.'),
          untrusted: z
            .object({ message: z.string().nullable() })
            .describe("Why the last try failed, in the edge's words."),
        }),
      )
      .describe('The edges for which it waits, at most 100.'),
  })
  .meta({ id: 'Promotion' })
export type PromotionView = z.infer<typeof promotionView>
export const promotionOfVdisk = z
  .object({ promotion: promotionView.nullable().describe('Null: none waits.') })
  .meta({ id: 'VdiskPromotion' })
