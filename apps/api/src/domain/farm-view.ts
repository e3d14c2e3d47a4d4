import { captureChoices } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { menuReference } from './boot-menu-view.ts'
import { bootSummary } from './boot-view.ts'
import { edgeSummary } from './edge-view.ts'
import { seenRevision } from './object-fields.ts'
import { pageInput, pageOf } from './page.ts'
import { personality } from './personality.ts'

const uuid = z.uuid()
const count = z.number().int().nonnegative()
const search = z.string().trim().max(64).optional()

export const farmListInput = z.object(pageInput)
export const farmSummary = z.object({
  id: uuid,
  name: z.string(),
  createdAt: z.iso.datetime(),
  revision: seenRevision,
})
export const farmPage = pageOf(farmSummary)

export const farmOverviewInput = z.object({ farmId: uuid })
const bootTimes = {
  readyCount: count,
  /** Failed and silent. */
  failedCount: count,
  /** Of all these, made by the demo's history generator. */
  generatedCount: count,
  /** Of the ready ones, from begin to ready; null where there is none. */
  p50Us: count.nullable(),
  p95Us: count.nullable(),
}
export const farmOverview = z.object({
  farm: farmSummary,
  counts: z.object({
    sites: count,
    edges: count,
    edgesOnline: count,
    collections: count,
    devices: count,
    devicesBooting: count,
    vdisks: count,
  }),
  recentBoots: z.array(bootSummary),
  last24Hours: z.object(bootTimes),
  /** The last 30 UTC days, oldest first, days without boots included. */
  byDay: z.array(z.object({ day: z.iso.date(), ...bootTimes })),
})
export type FarmOverview = z.infer<typeof farmOverview>

export const siteListInput = z.object({
  ...pageInput,
  farmId: uuid.optional(),
  /** Part of the name, upper or lower case. */
  search,
})
export const siteSummary = z.object({
  id: uuid,
  farmId: uuid,
  name: z.string(),
  timeZone: z.string(),
  revision: seenRevision,
  edgeCount: count,
  edgesOnline: count,
  deviceCount: count,
})
export type SiteSummary = z.infer<typeof siteSummary>
export const sitePage = pageOf(siteSummary)

export const collectionSummary = z.object({
  id: uuid,
  name: z.string(),
  siteId: uuid,
  siteName: z.string(),
  vdiskId: uuid.nullable(),
  vdiskName: z.string().nullable(),
  /** In place of the site's; null where it has none of its own. */
  bootProgramSet: z.string().nullable(),
  /** Shown by its devices unless they have a choice of their own. */
  bootMenu: menuReference.nullable(),
  deviceCount: count,
  revision: seenRevision,
})
export type CollectionSummary = z.infer<typeof collectionSummary>
export const collectionListInput = z.object({ ...pageInput, siteId: uuid.optional(), search })
export const collectionPage = pageOf(collectionSummary)
export const collectionGetInput = z.object({ collectionId: uuid })
export const collectionDetail = collectionSummary.extend({
  farmId: uuid,
  createdAt: z.iso.datetime(),
  /** Whose settings a new device of it gets. */
  templateDevice: z.object({ id: uuid, name: z.string() }).nullable(),
  personality,
  sitePersonality: personality,
})
export type CollectionDetail = z.infer<typeof collectionDetail>

export const siteGetInput = z.object({ siteId: uuid })
export const siteDetail = siteSummary.extend({
  farmName: z.string(),
  unknownDevices: z.enum(['ignore', 'boot']),
  /** Null: each edge's first. */
  bootProgramSet: z.string().nullable(),
  capture: z.enum(captureChoices),
  createdAt: z.iso.datetime(),
  personality,
  /** At most 100 each; the lists have them all. */
  edges: z.array(
    edgeSummary.extend({
      /** Of the site's devices, in percent, as long as the edges that are heard now stay. */
      share: count,
      /** Other edges of the site that it has heard from of late. */
      peersHeard: count,
    }),
  ),
  collections: z.array(collectionSummary),
})
export type SiteDetail = z.infer<typeof siteDetail>

export const setCaptureInput = z.object({ siteId: uuid, capture: z.enum(captureChoices) })
export const setCaptureResult = z.object({ capture: z.enum(captureChoices) })
