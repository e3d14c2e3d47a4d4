import { writeCacheClasses, writeCacheFullChoices } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
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
  access: z
    .enum(['maintenance', 'test', 'pending', 'default', 'override'])
    .nullable()
    .describe('Null: released before, or being made yet.'),
  isProtected: z.boolean().describe('It cannot be deleted, and retention keeps it.'),
  allowedSteps: z
    .array(z.enum(versionSteps))
    .describe(
      'The steps that are allowed now, the usual next one first. Devices that run it, boot menus and store jobs may still prevent one: the preview and the step itself report that.',
    ),
  releasedAt: instant.nullable().describe('When it was released or will be.'),
  sealedAt: instant.nullable().describe('Null: it is written or made yet.'),
  isSealing: z.boolean().describe('Its sealing was requested and is not done.'),
  parentVersionId: uuid.nullable().describe('The version from which it was made, which may be gone.'),
  manifest: z
    .object({ root: z.string(), counter: count })
    .nullable()
    .describe("In the edges' stores; null: a file at `diskPath`."),
  kernel: bundleFile.nullable(),
  initrd: bundleFile.nullable(),
  atEdges: z.array(versionAtEdge).describe("Reports of edges' stores; at most 200."),
  running: deviceTally.describe('Devices that run it now, and the first of them.'),
  next: deviceTally.describe('Devices that get it at their next boot.'),
})
export type VdiskVersionDetail = z.infer<typeof vdiskVersionDetail>

export const versionGetInput = z.object({ versionId: uuid })
export const versionView = vdiskVersionDetail.extend({ vdiskId: uuid, vdiskName: z.string() }).meta({ id: 'Version' })

const writeCacheSettings = z.object({
  class: z.enum(writeCacheClasses),
  limitBytes: count.nullable().describe('Per device; null: no limit.'),
  full: z.enum(writeCacheFullChoices),
})

export const vdiskSort = listSort({ name: text('name'), createdAt: instantOf('createdAt') }, 'name')
export const vdiskListInput = z.object({
  ...pageInput,
  sort: vdiskSort.input,
  farmId: uuid.optional(),
  ...searchInput,
})
const vdiskSummary = z
  .object({
    id: uuid,
    farmId: uuid,
    farmName: z.string(),
    name: z.string(),
    createdAt: instant,
    versionCount: count,
    newestVersion: vdiskVersionView
      .pick({ id: true, number: true, sizeBytes: true, createdAt: true })
      .nullable()
      .describe('The highest number, of any kind.'),
    bootedVersion: vdiskVersionView
      .pick({ id: true, number: true })
      .nullable()
      .describe('The version that its production devices boot.'),
  })
  .meta({ id: 'VdiskSummary' })
export const vdiskPage = pageOf(vdiskSummary)

export const vdiskGetInput = z.object({ vdiskId: uuid })
export const vdiskDetail = z
  .object({
    id: uuid,
    farmId: uuid,
    farmName: z.string(),
    name: z.string(),
    note: z.string(),
    store: z.object({ id: uuid, name: z.string() }).nullable(),
    revision: seenRevision,
    createdAt: instant,
    versions: z.array(vdiskVersionDetail).describe('Newest first.'),
    writeCache: writeCacheSettings,
    defaultVersionId: uuid
      .nullable()
      .describe('The version that production devices boot without an override, and with it.'),
    overrideVersionId: uuid.nullable(),
    pending: z.object({ versionId: uuid, releaseAt: instant }).nullable(),
    maintenance: z
      .object({
        versionId: uuid,
        device: z.object({ id: uuid, name: z.string() }).nullable().describe('Null: the device that wrote it is gone.'),
      })
      .nullable(),
    collections: z
      .array(z.object({ id: uuid, name: z.string(), siteName: z.string(), deviceCount: count }))
      .describe('Collections whose devices boot it, by name: the first 200.'),
    collectionCount: count.describe('All of them.'),
    deviceCount: count.describe("Devices that boot it instead of their collection's."),
    menus: z
      .array(
        z.object({
          id: uuid,
          name: z.string(),
          versionNumbers: z
            .array(count.nullable())
            .describe('For entries with one version; null stands for the newest.'),
        }),
      )
      .describe(
        'Boot menus with entries of this vDisk, each once; the vDisk and these versions cannot be removed meanwhile.',
      ),
  })
  .meta({ id: 'Vdisk' })
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
