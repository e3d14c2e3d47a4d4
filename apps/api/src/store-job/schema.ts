import { storeJobKinds } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { pageInput, pageOf } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

const storeJobStates = ['queued', 'running', 'done', 'failed', 'cancelled'] as const
/** Ended ones are kept for so long. */
export const storeJobsKeptDays = 30

export const storeJobListInput = z.object({
  ...pageInput,
  vdiskId: uuid.optional(),
  edgeId: uuid.optional(),
  /** `active`: queued or running. */
  state: z.enum([...storeJobStates, 'active']).optional(),
})
export const storeJobGetInput = z.object({ jobId: uuid })
export const startStoreJobInput = z.object({
  edgeId: uuid,
  /** `verify` reads all and compares it; `gc` frees what no version holds. */
  kind: z.enum(['verify', 'gc']),
  /** The version to verify; absent: the whole store. */
  versionId: uuid.nullable().default(null),
})

export const storeJobView = z.object({
  id: uuid,
  kind: z.enum(storeJobKinds),
  state: z.enum(storeJobStates),
  edge: z.object({ id: uuid, name: z.string(), siteId: uuid, siteName: z.string() }),
  /** Null: all of the store, or one that is gone. */
  vdisk: z.object({ id: uuid, name: z.string() }).nullable(),
  version: z.object({ id: uuid, number: count }).nullable(),
  /** The version that a merge makes. */
  intoVersion: z.object({ id: uuid, number: count }).nullable(),
  /** The device whose writes are dropped; null also if it is gone. */
  device: z.object({ id: uuid, name: z.string() }).nullable(),
  sourcePath: z.string().nullable(),
  progressBytes: count,
  /** 0: not known yet. */
  totalBytes: count,
  /** In the edge's words. */
  untrusted: z.object({ message: z.string().nullable() }),
  askedBy: z.string(),
  askedAt: instant,
  startedAt: instant.nullable(),
  endedAt: instant.nullable(),
})
export type StoreJobView = z.infer<typeof storeJobView>
export const storeJobPage = pageOf(storeJobView)
