import { edgeVersionStates } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { objectName, objectNote, pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

const storeFields = { name: objectName, note: objectNote }
export const createStoreInput = z.object({ farmId: uuid, name: objectName, note: objectNote.default('') })
export const updateStoreInput = z.object(storeFields).partial().extend({ storeId: uuid, revision: seenRevision })
export const storeGetInput = z.object({ storeId: uuid })
export const removeStoreInput = z.object({ storeId: uuid, revision: seenRevision.optional() })
export const storeSort = listSort({ name: text('name'), createdAt: instantOf('createdAt') }, 'name')
export const storeListInput = z.object({
  ...pageInput,
  sort: storeSort.input,
  farmId: uuid.optional(),
  ...searchInput,
})
export const storeSummary = z
  .object({
    id: uuid,
    farmId: uuid,
    farmName: z.string(),
    name: z.string(),
    note: z.string(),
    revision: seenRevision,
    vdiskCount: count,
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'StoreSummary' })
export const storePage = pageOf(storeSummary)
export const storeDetail = storeSummary
  .extend({
    vdisks: z.array(z.object({ id: uuid, name: z.string(), versionCount: count })).describe('At most 100.'),
  })
  .meta({ id: 'Store' })

export const edgeImagesInput = z.object({ edgeId: uuid, ...pageInput })

/** The images in an edge's store that are no version of any vDisk. */
const edgeImageView = z
  .object({
    versionId: uuid,
    state: z.enum(edgeVersionStates),
    sizeBytes: count.nullable().describe('Size of the disk; null: unknown.'),
    madeAt: instant.nullable(),
    hasKernel: z.boolean(),
    ownBytes: count,
    sharedBytes: count,
    reclaimableBytes: count,
    parent: z
      .object({ vdiskId: uuid, vdiskName: z.string(), number: count })
      .nullable()
      .describe("The version from which it was made, if that belongs to a vDisk of the edge's farm."),
    problem: z.string().nullable().describe('Why it cannot be adopted; null: it can.'),
    untrusted: z.object({ name: z.string() }).describe("In the edge's words."),
    reportedAt: instant,
  })
  .meta({ id: 'EdgeImage' })
export type EdgeImageView = z.infer<typeof edgeImageView>
export const edgeImagePage = pageOf(edgeImageView)
