import { z } from 'zod'
import { bootSummary } from '../boot/schema.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

export const overviewInput = z.object({
  farmId: uuid.optional().describe('Only this farm; the whole organization without it.'),
  siteId: uuid.optional().describe('Only this site.'),
})

const bootTimes = {
  readyCount: count,
  failedCount: count.describe('Failed and silent: the boots of `outcome=unsuccessful`.'),
  noResponseCount: count.describe('Power-ons that the device did not answer: they are no boots.'),
  generatedCount: count.describe("How many of these the demo's history generator created."),
  p50Us: count.nullable().describe('Duration of successful boots, from start to ready; null if there is none.'),
  p95Us: count.nullable(),
}

/** The figures of an organization, a farm or a site. */
export const overviewFigures = {
  counts: z.object({
    sites: count,
    edges: count,
    edgesOnline: count,
    collections: count,
    devices: count,
    devicesBooting: count,
    bootsBooting: count.describe('Boots in progress, those of devices that are not registered included.'),
    vdisks: count,
    keyAlarms: count.describe('Devices that have not proved their known key: a person has to decide.'),
    keysWaiting: count.describe('Devices whose key waits for approval.'),
    devicesLost: count.describe('Devices that have lost their disk for good and wait for a restart.'),
  }),
  recentBoots: z.array(bootSummary),
  last24Hours: z
    .object({ since: instant.describe('The start of these 24 hours; the last one is in progress.'), ...bootTimes })
    .describe('Figures of boots are kept by site, and cover the sites whose boots the caller may all see.'),
  byDay: z
    .array(z.object({ day: z.iso.date(), ...bootTimes }))
    .describe('The last 30 UTC days, oldest first, days without boots included.'),
}

export const collectionOverviewInput = z.object({ collectionId: uuid })
export const collectionOverview = z
  .object({
    deviceCount: count.describe('Devices in the collection.'),
    bootsBooting: count.describe('Boots of its devices that are in progress.'),
    last24Hours: z
      .object({ since: instant.describe('The start of these 24 hours; the last one is in progress.'), ...bootTimes })
      .describe('Boots of the devices that are in it now.'),
  })
  .meta({ id: 'CollectionOverview' })
export type CollectionOverview = z.infer<typeof collectionOverview>

const named = z.object({ id: uuid, name: z.string() })
export const overview = z
  .object({
    farm: named.nullable().describe('Null for the whole organization.'),
    site: named.nullable(),
    ...overviewFigures,
  })
  .meta({ id: 'Overview' })
export type Overview = z.infer<typeof overview>
