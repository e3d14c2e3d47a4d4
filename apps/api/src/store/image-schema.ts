import { edgeVersionStates } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { pageInput, pageOf } from '../rules/page.ts'

const uuid = z.uuid()
const instant = z.iso.datetime()
const count = z.number().int().nonnegative()

export const edgeImagesInput = z.object({ edgeId: uuid, ...pageInput })

/** What an edge's store holds that is no version of any vDisk. */
export const edgeImageView = z.object({
  versionId: uuid,
  state: z.enum(edgeVersionStates),
  /** Of the disk; null: not known. */
  sizeBytes: count.nullable(),
  madeAt: instant.nullable(),
  hasKernel: z.boolean(),
  ownBytes: count,
  sharedBytes: count,
  reclaimableBytes: count,
  /** What it was made from, where that is a version of a vDisk of the edge's farm. */
  parent: z.object({ vdiskId: uuid, vdiskName: z.string(), number: count }).nullable(),
  /** Why it cannot be adopted; null: it can. */
  problem: z.string().nullable(),
  /** As the edge said it. */
  untrusted: z.object({ name: z.string() }),
  reportedAt: instant,
})
export type EdgeImageView = z.infer<typeof edgeImageView>
export const edgeImagePage = pageOf(edgeImageView)
