import { z } from 'zod'
import { setMenuOfDeviceInput } from '../boot-menu/schema.ts'
import { setOfDeviceInput } from '../rules/boot-programs.ts'
import { deviceType, tags } from '../rules/object-fields.ts'
import { csvSizeMax } from './device-csv.ts'
import { deviceListInput } from './schema.ts'

/** Many devices at once: what will become of each is shown first, and then all of them change, or none. */

const uuid = z.uuid()
const count = z.number().int().nonnegative()
export const bulkMax = 1_000
export const powerBulkMax = 200
export const exportMax = 10_000
/** Rows that a preview shows; its counts are of all. */
export const previewRowsMax = 1_000

const deviceIds = z.array(uuid).min(1).max(bulkMax)

export const deviceFilterInput = deviceListInput.omit({ cursor: true, limit: true })
export const deviceIdsResult = z.object({
  ids: z.array(uuid),
  /** Whether the filter leaves more than can be changed at once. */
  isCut: z.boolean(),
})

export const changeManyInput = z.object({
  deviceIds,
  /** Only says what would become of them. */
  preview: z.boolean().default(false),
  collectionId: uuid.optional(),
  enabled: z.boolean().optional(),
  addTags: tags.optional(),
  removeTags: tags.optional(),
  /** Null: its collection's. */
  vdiskId: uuid.nullable().optional(),
  deviceType: deviceType.optional(),
  bootProgramSet: setOfDeviceInput.shape.bootProgramSet.optional(),
  menu: setMenuOfDeviceInput.shape.menu.optional(),
})
export const removeManyInput = z.object({ deviceIds })
export const powerManyInput = z.object({
  deviceIds: z.array(uuid).min(1).max(powerBulkMax),
  order: z.enum(['power_on', 'power_off', 'restart']),
})
export const manyDone = z.object({ count })

export const plannedRow = z.object({
  /** Of the file; null for a selection. */
  line: count.nullable(),
  deviceId: uuid.nullable(),
  name: z.string(),
  mac: z.string(),
  kind: z.enum(['created', 'changed', 'unchanged', 'refused']),
  /** Names of the fields that differ, and what happens besides. */
  changes: z.array(z.string()),
  problems: z.array(z.string()),
})
export const planResult = z.object({
  /** Whether it is done: never with a problem in any row. */
  applied: z.boolean(),
  createdCount: count,
  changedCount: count,
  unchangedCount: count,
  refusedCount: count,
  /** At most 1,000, those with problems first. */
  rows: z.array(plannedRow),
})
export type PlanResult = z.infer<typeof planResult>

export const importCsvInput = z.object({
  siteId: uuid,
  csv: z.string().min(1).max(csvSizeMax, 'The file is too large.'),
  /** Only says what would become of it. */
  preview: z.boolean().default(true),
})
export const csvResult = z.object({
  csv: z.string(),
  count,
  /** Whether there are more devices than a file holds. */
  isCut: z.boolean(),
})
