import { z } from 'zod'
import {
  deviceName,
  deviceType,
  objectName,
  objectNote,
  seenRevision,
  tags,
  timeZone,
  writtenMac,
} from './object-fields.ts'
import { pageInput, pageOf } from './page.ts'
import { personality } from './personality.ts'

/** What creating, changing, moving and deleting objects takes and gives. */

const uuid = z.uuid()
const count = z.number().int().nonnegative()

/** Enough to go on with: the object's page is read anew. */
export const changedObject = z.object({ id: uuid, name: z.string(), revision: seenRevision })
export type ChangedObject = z.infer<typeof changedObject>

/** What was deleted, and by which deletion it can be restored. */
export const deletedObject = z.object({ deletionId: uuid, name: z.string() })
export type DeletedObject = z.infer<typeof deletedObject>
export const restoreInput = z.object({ deletionId: uuid })
export const restoredObject = z.object({ id: uuid, name: z.string() })

export const createFarmInput = z.object({ name: objectName })
export const updateFarmInput = z.object({ farmId: uuid, revision: seenRevision, name: objectName.optional() })
export const removeFarmInput = z.object({ farmId: uuid, revision: seenRevision.optional() })

const siteFields = {
  name: objectName,
  timeZone,
  unknownDevices: z.enum(['ignore', 'boot']),
  personality,
}
export const createSiteInput = z.object({
  farmId: uuid,
  name: siteFields.name,
  timeZone: siteFields.timeZone,
  unknownDevices: siteFields.unknownDevices.default('ignore'),
})
export const updateSiteInput = z.object(siteFields).partial().extend({ siteId: uuid, revision: seenRevision })
export const moveSiteInput = z.object({
  siteId: uuid,
  farmId: uuid,
  revision: seenRevision,
  /** Takes from collections and devices what belongs to the farm that is left: vDisks and boot menus. */
  dropForeign: z.boolean().default(false),
})
export const removeSiteInput = z.object({ siteId: uuid, revision: seenRevision.optional() })

const collectionFields = {
  name: objectName,
  vdiskId: uuid.nullable(),
  templateDeviceId: uuid.nullable(),
  personality,
}
export const createCollectionInput = z.object({
  siteId: uuid,
  name: collectionFields.name,
  vdiskId: collectionFields.vdiskId.default(null),
})
export const updateCollectionInput = z
  .object(collectionFields)
  .partial()
  .extend({ collectionId: uuid, revision: seenRevision })
export const removeCollectionInput = z.object({ collectionId: uuid, revision: seenRevision.optional() })

const deviceFields = {
  name: deviceName,
  mac: writtenMac,
  enabled: z.boolean(),
  tags,
  personality,
  vdiskId: uuid.nullable(),
  deviceType,
}
export const createDeviceInput = z.object(deviceFields).partial().extend({
  collectionId: uuid,
  name: deviceFields.name,
  mac: deviceFields.mac,
  /** Whose settings it gets where none are given; null: nobody's, also where the collection names a template. */
  templateDeviceId: uuid.nullish(),
})
export const updateDeviceInput = z.object(deviceFields).partial().extend({ deviceId: uuid, revision: seenRevision })
export const removeDeviceInput = z.object({ deviceId: uuid, revision: seenRevision.optional() })

const vdiskFields = { name: objectName, note: objectNote, storeId: uuid.nullable() }
export const createVdiskInput = z.object({
  farmId: uuid,
  name: vdiskFields.name,
  note: objectNote.default(''),
  storeId: vdiskFields.storeId.default(null),
})
export const updateVdiskInput = z.object(vdiskFields).partial().extend({ vdiskId: uuid, revision: seenRevision })
export const removeVdiskInput = z.object({ vdiskId: uuid, revision: seenRevision.optional() })

const versionSizeBytesMax = 64 * 1024 ** 4
const commandLineSizeMax = 1_024
/** As the edge's `isCommandLine`: iPXE has no quotes for these. */
const endsScript = /\$\{|(^| )(\|\||&&|;)( |$)|(^| )#/
function storePathProblem(path: string): string | null {
  if (path.startsWith('/')) return 'The path begins with /'
  if (path.includes('\\')) return 'The path has a backslash'
  if (/\p{C}/u.test(path)) return 'The path has a character that cannot be seen'
  const parts = path.split('/')
  if (parts.includes('..') || parts.includes('.')) return 'The path has . or .. in it'
  return parts.includes('') ? 'A name is missing in the path, between two / or at its end' : null
}

/** Below the store's directory: relative, without a way out. */
export const storePath = z
  .string()
  .trim()
  .min(1, 'Give its path below the store.')
  .max(255)
  .superRefine((path, { addIssue }) => {
    const problem = storePathProblem(path)
    if (problem) addIssue(`${problem}: write it as it is below the store’s directory, e.g. imports/linux.raw.`)
  })
export const commandLineText = z
  .string()
  .trim()
  .max(commandLineSizeMax)
  .regex(/^[\x20-\x7e]*$/, 'A command line is one line of printable ASCII.')
  .refine(
    (text) => !endsScript.test(text),
    'A command line has no ${, no word || or && or ;, and no word that begins with #: iPXE would take what follows for something else.',
  )
  .default('')
export const registerVersionInput = z.object({
  vdiskId: uuid,
  diskPath: storePath,
  sizeBytes: z
    .number()
    .int()
    .positive()
    .max(versionSizeBytesMax)
    .refine((size) => size % 512 === 0, 'A disk’s size is a multiple of 512 bytes.'),
  kernelPath: storePath.nullable().default(null),
  initrdPath: storePath.nullable().default(null),
  commandLine: commandLineText,
  note: objectNote.default(''),
  labels: tags.default([]),
  /** `test`: for devices that try it out, until it is promoted; `released`: its devices boot it from now on. */
  state: z.enum(['test', 'released']).default('released'),
})
export const updateVersionInput = z.object({
  versionId: uuid,
  revision: seenRevision,
  note: objectNote.optional(),
  labels: tags.optional(),
})
export const removeVersionInput = z.object({ versionId: uuid, revision: seenRevision.optional() })

const storeFields = { name: objectName, note: objectNote }
export const createStoreInput = z.object({ farmId: uuid, name: objectName, note: objectNote.default('') })
export const updateStoreInput = z.object(storeFields).partial().extend({ storeId: uuid, revision: seenRevision })
export const storeGetInput = z.object({ storeId: uuid })
export const removeStoreInput = z.object({ storeId: uuid, revision: seenRevision.optional() })
export const storeListInput = z.object({ ...pageInput, farmId: uuid.optional() })
export const storeSummary = z.object({
  id: uuid,
  farmId: uuid,
  farmName: z.string(),
  name: z.string(),
  note: z.string(),
  revision: seenRevision,
  vdiskCount: count,
  createdAt: z.iso.datetime(),
})
export const storePage = pageOf(storeSummary)
export const storeDetail = storeSummary.extend({
  /** At most 100. */
  vdisks: z.array(z.object({ id: uuid, name: z.string(), versionCount: count })),
})
