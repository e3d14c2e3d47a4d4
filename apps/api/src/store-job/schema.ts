import { exportFormats, storeJobKinds } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { pageInput, pageOf } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

const storeJobStates = ['queued', 'running', 'done', 'failed', 'cancelled'] as const
/** Ended ones are kept for so long. */
export const storeJobsKeptDays = 30

export const storeJobSort = listSort({ askedAt: instantOf('askedAt') }, '-askedAt')
export const storeJobListInput = z.object({
  ...pageInput,
  sort: storeJobSort.input,
  vdiskId: uuid.optional(),
  edgeId: uuid.optional(),
  state: z
    .enum([...storeJobStates, 'active'])
    .optional()
    .describe('`active`: queued or running.'),
})
export const storeJobGetInput = z.object({ jobId: uuid })
export const startStoreJobInput = z.object({
  edgeId: uuid,
  kind: z
    .enum(['verify', 'gc', 'export'])
    .describe(
      '`verify` reads all and compares it; `gc` frees what no version holds; `export` writes a version to a file in the directory `exports` of the store.',
    ),
  versionId: uuid
    .nullable()
    .default(null)
    .describe('The version to verify or to export; absent: the whole store is verified.'),
  format: z.enum(exportFormats).nullable().default(null).describe('The format of the file, for an export.'),
})

export const storeJobView = z
  .object({
    id: uuid,
    kind: z.enum(storeJobKinds),
    state: z.enum(storeJobStates),
    edge: z.object({ id: uuid, name: z.string(), siteId: uuid, siteName: z.string() }),
    vdisk: z.object({ id: uuid, name: z.string() }).nullable().describe('Null: all of the store, or one that is gone.'),
    version: z.object({ id: uuid, number: count }).nullable(),
    intoVersion: z.object({ id: uuid, number: count }).nullable().describe('The version that a merge makes.'),
    device: z
      .object({ id: uuid, name: z.string() })
      .nullable()
      .describe('The device whose writes are dropped; null also if it is gone.'),
    sourcePath: z.string().nullable(),
    sourceUrl: z.string().nullable().describe('URL of the image of an import, without its query.'),
    format: z.enum(exportFormats).nullable().describe('The format of an exported file.'),
    progressBytes: count,
    totalBytes: count.describe('0: not known yet.'),
    untrusted: z.object({ message: z.string().nullable() }).describe("In the edge's words."),
    askedBy: z.string(),
    askedAt: instant,
    startedAt: instant.nullable(),
    endedAt: instant.nullable(),
  })
  .meta({ id: 'StoreJob' })
export type StoreJobView = z.infer<typeof storeJobView>
export const storeJobPage = pageOf(storeJobView)
