import { z } from 'zod'
import { bootSummary } from '../boot/schema.ts'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { objectName, pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { count, uuid } from '../rules/scalars.ts'

export const farmSort = listSort({ name: text('name'), createdAt: instantOf('createdAt') }, 'name')
export const farmListInput = z.object({
  ...pageInput,
  sort: farmSort.input,
  ...searchInput,
})
const farmSummary = z
  .object({
    id: uuid,
    name: z.string(),
    createdAt: z.iso.datetime(),
    revision: seenRevision,
  })
  .meta({ id: 'FarmSummary' })
export const farmPage = pageOf(farmSummary)
export const farmView = farmSummary.extend({}).meta({ id: 'Farm' })

export const farmInput = z.object({ farmId: uuid })
const bootTimes = {
  readyCount: count,
  failedCount: count.describe('Failed and silent.'),
  generatedCount: count.describe("How many of these the demo's history generator created."),
  p50Us: count.nullable().describe('Duration of successful boots, from start to ready; null if there is none.'),
  p95Us: count.nullable(),
}
export const farmOverview = z
  .object({
    farm: farmSummary,
    counts: z.object({
      sites: count,
      edges: count,
      edgesOnline: count,
      collections: count,
      devices: count,
      devicesBooting: count,
      vdisks: count,
      keyAlarms: count.describe('Devices that have not proved their known key: a person has to decide.'),
      keysWaiting: count.describe('Devices whose key waits for approval.'),
      devicesLost: count.describe('Devices that have lost their disk for good and wait for a restart.'),
    }),
    recentBoots: z.array(bootSummary),
    last24Hours: z
      .object(bootTimes)
      .describe('Figures of boots are kept by site, and cover the sites whose boots the caller may all see.'),
    byDay: z
      .array(z.object({ day: z.iso.date(), ...bootTimes }))
      .describe('The last 30 UTC days, oldest first, days without boots included.'),
  })
  .meta({ id: 'FarmOverview' })
export type FarmOverview = z.infer<typeof farmOverview>

export const createFarmInput = z.object({ name: objectName })
export const updateFarmInput = z.object({ farmId: uuid, revision: seenRevision, name: objectName.optional() })
export const removeFarmInput = z.object({ farmId: uuid, revision: seenRevision.optional() })
