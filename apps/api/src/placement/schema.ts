import { siteEdgesMax } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { waitReasons } from './transfer-facts.ts'

const sitesMax = 1000
const rateMin = 1024
/** Ten terabytes a second: no line has more. */
const rateMax = 10 ** 13

export const timeOfDay = z
  .string()
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'Enter a time of day as HH:MM, for example 22:00.')
  .meta({ examples: ['22:00'] })
const timeWindow = z
  .object({
    from: timeOfDay.describe('Transfers start from this time of day on.'),
    to: timeOfDay
      .describe('None starts from then on; earlier than `from`: on the next day.')
      .meta({ examples: ['06:00'] }),
  })
  .refine(({ from, to }) => from !== to, 'The window ends when it begins. Leave it out for the whole day.')

const rule = {
  edges: z
    .number()
    .int()
    .min(0)
    .max(siteEdgesMax, `A site has at most ${siteEdgesMax} edges. Leave the number out for all of them.`)
    .nullable()
    .describe('Number of edges of a site that hold each version; null: all; 0: none.'),
  rateBytesPerSecond: z
    .number()
    .int()
    .min(rateMin, `A limit is at least ${rateMin} bytes per second. Leave it out for none.`)
    .max(rateMax)
    .nullable()
    .default(null)
    .describe('Bytes per second that each edge gets from or sends to the control plane at most; null: no limit.'),
  window: timeWindow
    .nullable()
    .default(null)
    .describe("When transfers start, by the clocks of the site's time zone; null: at any time."),
}
const rules = z.object({
  others: z
    .object(rule)
    .nullable()
    .describe('For every site that `sites` does not name, also new ones; null: they hold nothing.'),
  sites: z
    .array(z.object({ siteId: uuid, ...rule }))
    .max(sitesMax)
    .default([])
    .describe('Sites with rules that differ.')
    .refine(
      (sites) => new Set(sites.map(({ siteId }) => siteId)).size === sites.length,
      'A site is named twice. Give it one rule.',
    ),
})
export type Rules = z.output<typeof rules>

export const placementGetInput = z.object({ vdiskId: uuid })
export const placementSetInput = z.object({
  vdiskId: uuid,
  revision: seenRevision,
  rules: rules.nullable().describe('Null: those of the farm.'),
})
export const farmPlacementGetInput = z.object({ farmId: uuid })
export const farmPlacementSetInput = z.object({
  farmId: uuid,
  revision: seenRevision,
  rules: rules.nullable().describe('For vDisks without a placement. Null: every edge of every site.'),
})

const ruleView = z.object({
  edges: count.nullable().describe('Number of edges of a site that hold each version; null: all.'),
  rateBytesPerSecond: count.nullable().describe('Limit for each edge; null: none.'),
  window: z
    .object({ from: z.string().describe('HH:MM.'), to: z.string().describe('HH:MM.') })
    .nullable()
    .describe('When transfers start, in the zone of the site; null: at any time.'),
})
export const placementView = z
  .object({
    revision: seenRevision,
    isInherited: z
      .boolean()
      .describe('Nobody has chosen these rules here: they are those of the farm, or the default.'),
    others: ruleView.nullable().describe('For sites that are not named; null: they hold nothing.'),
    sites: z.array(ruleView.extend({ siteId: uuid, siteName: z.string() })).describe('Sites with rules that differ.'),
  })
  .meta({ id: 'Placement' })
export type PlacementView = z.infer<typeof placementView>

const copyView = z.object({
  versionId: uuid,
  edgeId: uuid,
  state: z
    .enum(['holds', 'damaged', 'fetching', 'lacks'])
    .describe('`lacks`: the edge is to hold the version and does not. Edges that are not to hold it are left out.'),
  waitsFor: z
    .enum(waitReasons)
    .nullable()
    .describe(
      'Why nothing is fetched now. `packing`: another edge prepares it; `site`: another edge of the site fetches it first; `base`: the version before it comes first; `turn`: other transfers come first; `space`: its store has too little free space.',
    ),
  retryAt: instant.nullable().describe('When it is tried again, after a failure or a cancellation.'),
  progressBytes: count,
  totalBytes: count.describe('0: not known yet.'),
  untrusted: z
    .object({ message: z.string().nullable() })
    .describe("Why the last try failed, in the edge's words, or how much space is missing."),
  repaired: count.describe('Damaged blocks that the edge has repaired from other edges of its site since it started.'),
  notRepaired: count.describe('How often no other edge had a block that is damaged here, since the edge started.'),
})
export type CopyView = z.infer<typeof copyView>
export const copiesView = z
  .object({
    versions: z.array(z.object({ id: uuid, number: count })).describe('Sealed versions, the newest first.'),
    edges: z
      .array(
        z.object({
          id: uuid,
          name: z.string(),
          siteId: uuid,
          siteName: z.string(),
          isOnline: z.boolean().describe('It was heard lately.'),
        }),
      )
      .describe('The first edges that hold a version or are to hold one, by site and name.'),
    edgeCount: count.describe('Count of all such edges.'),
    copies: z.array(copyView).describe('One for each version and edge that it concerns.'),
  })
  .meta({ id: 'VersionCopies' })
export type CopiesView = z.infer<typeof copiesView>
