import { writeCacheClasses, writeCacheFullChoices } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { objectName, objectNote, pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { versionAtEdge } from './version-schema.ts'
import { versionSteps } from './version-steps.ts'

const vdiskVersionView = z.object({
  id: uuid,
  number: count,
  sizeBytes: count,
  diskPath: z.string(),
  kernelPath: z.string().nullable(),
  initrdPath: z.string().nullable(),
  commandLine: z.string(),
  note: z.string(),
  labels: z.array(z.string()),
  revision: seenRevision,
  createdAt: instant,
})

const deviceTally = z.object({ count, names: z.array(z.string()) })
const bundleFile = z.object({ sha256: z.string(), sizeBytes: count })

const vdiskVersionDetail = vdiskVersionView.extend({
  state: z.enum(['maintenance', 'test', 'released']),
  /** Null: released before, or being made yet. */
  access: z.enum(['maintenance', 'test', 'pending', 'default', 'override']).nullable(),
  /**
   * The steps that are allowed now, the usual next one first. Devices that run it, boot menus and store jobs may still
   * prevent one: the preview and the step itself report that.
   */
  allowedSteps: z.array(z.enum(versionSteps)),
  /** When it was released or will be. */
  releasedAt: instant.nullable(),
  /** Null: it is written or made yet. */
  sealedAt: instant.nullable(),
  /** Its sealing was requested and is not done. */
  isSealing: z.boolean(),
  /** The version from which it was made, which may be gone. */
  parentVersionId: uuid.nullable(),
  /** In the edges' stores; null: a file at `diskPath`. */
  manifest: z.object({ root: z.string(), counter: count }).nullable(),
  kernel: bundleFile.nullable(),
  initrd: bundleFile.nullable(),
  /** Reports of edges' stores; at most 200. */
  atEdges: z.array(versionAtEdge),
  /** Devices that run it now, and the first of them. */
  running: deviceTally,
  /** Devices that get it at their next boot. */
  next: deviceTally,
})
export type VdiskVersionDetail = z.infer<typeof vdiskVersionDetail>

const writeCacheSettings = z.object({
  class: z.enum(writeCacheClasses),
  /** Per device; null: no limit. */
  limitBytes: count.nullable(),
  full: z.enum(writeCacheFullChoices),
})

export const vdiskListInput = z.object({
  ...pageInput,
  farmId: uuid.optional(),
  ...searchInput,
})
const vdiskSummary = z.object({
  id: uuid,
  farmId: uuid,
  farmName: z.string(),
  name: z.string(),
  createdAt: instant,
  versionCount: count,
  /** The highest number, of any kind. */
  newestVersion: vdiskVersionView.pick({ id: true, number: true, sizeBytes: true, createdAt: true }).nullable(),
  /** The version that its production devices boot. */
  bootedVersion: vdiskVersionView.pick({ id: true, number: true }).nullable(),
})
export const vdiskPage = pageOf(vdiskSummary)

export const vdiskGetInput = z.object({ vdiskId: uuid })
export const vdiskDetail = z.object({
  id: uuid,
  farmId: uuid,
  farmName: z.string(),
  name: z.string(),
  note: z.string(),
  store: z.object({ id: uuid, name: z.string() }).nullable(),
  revision: seenRevision,
  createdAt: instant,
  /** Newest first. */
  versions: z.array(vdiskVersionDetail),
  writeCache: writeCacheSettings,
  /** The version that production devices boot without an override, and with it. */
  defaultVersionId: uuid.nullable(),
  overrideVersionId: uuid.nullable(),
  pending: z.object({ versionId: uuid, releaseAt: instant }).nullable(),
  maintenance: z
    .object({
      versionId: uuid,
      /** Null: the device that wrote it is gone. */
      device: z.object({ id: uuid, name: z.string() }).nullable(),
    })
    .nullable(),
  collections: z.array(z.object({ id: uuid, name: z.string(), siteName: z.string(), deviceCount: count })),
  /** Devices that boot it instead of their collection's. */
  deviceCount: count,
  /** Boot menus with entries of this vDisk, each once; the vDisk and these versions cannot be removed meanwhile. */
  menus: z.array(
    z.object({
      id: uuid,
      name: z.string(),
      /** For entries with one version; null stands for the newest. */
      versionNumbers: z.array(count.nullable()),
    }),
  ),
})
export type VdiskDetail = z.infer<typeof vdiskDetail>

const vdiskFields = { name: objectName, note: objectNote, storeId: uuid.nullable() }
export const createVdiskInput = z.object({
  farmId: uuid,
  name: vdiskFields.name,
  note: objectNote.default(''),
  storeId: vdiskFields.storeId.default(null),
})
export const updateVdiskInput = z.object(vdiskFields).partial().extend({ vdiskId: uuid, revision: seenRevision })
export const removeVdiskInput = z.object({ vdiskId: uuid, revision: seenRevision.optional() })
