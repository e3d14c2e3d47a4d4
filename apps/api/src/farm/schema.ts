import { z } from 'zod'
import { overviewFigures } from '../overview/schema.ts'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { objectName, pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { uuid } from '../rules/scalars.ts'

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
export const farmOverview = z.object({ farm: farmSummary, ...overviewFigures }).meta({ id: 'FarmOverview' })
export type FarmOverview = z.infer<typeof farmOverview>

export const createFarmInput = z.object({ name: objectName })
export const updateFarmInput = z.object({ farmId: uuid, revision: seenRevision, name: objectName.optional() })
export const removeFarmInput = z.object({ farmId: uuid, revision: seenRevision.optional() })
