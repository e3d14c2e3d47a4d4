import { cacheCopyHoursMax, captureChoices } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { collectionSummary } from '../collection/schema.ts'
import { edgeSummary } from '../edge/schema.ts'
import { personality } from '../rules/device/personality.ts'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { objectName, pageInput, pageOf, seenRevision, timeZone } from '../rules/object-fields.ts'
import { count, uuid } from '../rules/scalars.ts'

const search = z.string().trim().max(64).optional()

export const siteSort = listSort({ name: text('name'), createdAt: instantOf('createdAt') }, 'name')
export const siteListInput = z.object({
  ...pageInput,
  sort: siteSort.input,
  farmId: uuid.optional(),
  siteId: uuid.optional().describe('Only this site.'),
  search: search.describe('Part of the name, upper or lower case.'),
})
const siteSummary = z
  .object({
    id: uuid,
    farmId: uuid,
    name: z.string(),
    timeZone: z.string(),
    revision: seenRevision,
    edgeCount: count,
    edgesOnline: count,
    deviceCount: count,
  })
  .meta({ id: 'SiteSummary' })
export type SiteSummary = z.infer<typeof siteSummary>
export const sitePage = pageOf(siteSummary)

const cacheCopyHours = z.number().int().min(0).max(cacheCopyHoursMax)

export const siteGetInput = z.object({ siteId: uuid })
export const siteDetail = siteSummary
  .extend({
    farmName: z.string(),
    unknownDevices: z.enum(['ignore', 'boot']),
    bootProgramSet: z.string().nullable().describe("Null: each edge's first."),
    capture: z.enum(captureChoices),
    cacheCopyHours,
    createdAt: z.iso.datetime(),
    personality,
    edges: z
      .array(
        edgeSummary.extend({
          share: count.describe("Share of the site's devices, in percent, while the edges that are heard now stay."),
          peersHeard: count.describe('Other edges of the site that it has heard from of late.'),
        }),
      )
      .describe('At most 100 each; the lists have them all.'),
    collections: z.array(collectionSummary),
  })
  .meta({ id: 'Site' })
export type SiteDetail = z.infer<typeof siteDetail>

export const setCaptureInput = z.object({ siteId: uuid, capture: z.enum(captureChoices) })
export const setCaptureResult = z.object({ capture: z.enum(captureChoices) }).meta({ id: 'ChosenCapture' })

export const setCacheCopiesInput = z.object({ siteId: uuid, cacheCopyHours })
export const setCacheCopiesResult = z.object({ cacheCopyHours }).meta({ id: 'ChosenCacheCopies' })

const siteFields = { name: objectName, timeZone, unknownDevices: z.enum(['ignore', 'boot']), personality }
export const createSiteInput = z.object({
  farmId: uuid,
  name: siteFields.name,
  timeZone: siteFields.timeZone,
  unknownDevices: siteFields.unknownDevices.default('ignore'),
})
export const updateSiteInput = z.object(siteFields).partial().extend({ siteId: uuid, revision: seenRevision })
export const moveSiteInput = z.object({
  siteId: uuid,
  farmId: uuid,
  revision: seenRevision,
  dropForeign: z
    .boolean()
    .default(false)
    .describe('Takes from collections and devices what belongs to the farm that is left: vDisks and boot menus.'),
})
export const removeSiteInput = z.object({ siteId: uuid, revision: seenRevision.optional() })
