import { z } from 'zod'
import { seenRevision } from './object-fields.ts'
import { pageInput, pageOf } from './page.ts'

const uuid = z.uuid()
const instant = z.iso.datetime()
const count = z.number().int().nonnegative()

export const vdiskVersionView = z.object({
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

export const vdiskListInput = z.object({
  ...pageInput,
  farmId: uuid.optional(),
  /** Part of the name, upper or lower case. */
  search: z.string().trim().max(64).optional(),
})
export const vdiskSummary = z.object({
  id: uuid,
  farmId: uuid,
  name: z.string(),
  createdAt: instant,
  versionCount: count,
  /** By its number, whatever it is kept as. */
  newestVersion: vdiskVersionView
    .pick({ id: true, number: true, sizeBytes: true, createdAt: true })
    .nullable(),
  /** What its production devices boot. */
  bootedVersion: vdiskVersionView.pick({ id: true, number: true }).nullable(),
})
export type VdiskSummary = z.infer<typeof vdiskSummary>
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
  versions: z.array(vdiskVersionView),
  collections: z.array(z.object({ id: uuid, name: z.string(), siteName: z.string(), deviceCount: count })),
  /** Devices that boot it in place of their collection's. */
  deviceCount: count,
  /** Boot menus with entries of this vDisk, each once; the vDisk and these versions cannot be removed meanwhile. */
  menus: z.array(
    z.object({
      id: uuid,
      name: z.string(),
      /** Of entries for one version; null stands for the newest. */
      versionNumbers: z.array(count.nullable()),
    }),
  ),
})
export type VdiskDetail = z.infer<typeof vdiskDetail>
