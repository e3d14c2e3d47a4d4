import { z } from 'zod'
import { menuReference } from '../boot-menu/schema.ts'
import { bootSettings } from '../rules/boot-settings.ts'
import { keyLearning, keylessAccess, keyPolicyDefault } from '../rules/device/device-key.ts'
import { personality } from '../rules/device/personality.ts'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { objectName, pageInput, pageOf, seenRevision } from '../rules/object-fields.ts'
import { count, uuid } from '../rules/scalars.ts'

const search = z.string().trim().max(64).optional()

export const collectionSummary = z
  .object({
    id: uuid,
    name: z.string(),
    siteId: uuid,
    siteName: z.string(),
    vdiskId: uuid.nullable(),
    vdiskName: z.string().nullable(),
    bootProgramSet: z.string().nullable().describe("Instead of the site's; null if it has none."),
    bootMenu: menuReference.nullable().describe('Shown by its devices unless they have their own choice.'),
    deviceCount: count,
    keyLearn: keyLearning.describe("How the key in a device's TPM becomes known."),
    keyWithout: keylessAccess.describe('What devices get that have proved no known key.'),
    bootSettings: z
      .array(z.string())
      .describe('Settings, `name=value`, that its devices boot with beside the command line of their version.'),
    revision: seenRevision,
  })
  .meta({ id: 'CollectionSummary' })
export type CollectionSummary = z.infer<typeof collectionSummary>
export const collectionSort = listSort({ name: text('name'), createdAt: instantOf('createdAt') }, 'name')
export const collectionListInput = z.object({
  ...pageInput,
  sort: collectionSort.input,
  siteId: uuid.optional(),
  search,
})
export const collectionPage = pageOf(collectionSummary)
export const collectionGetInput = z.object({ collectionId: uuid })
/** Of its devices' keys, those on which a person has to decide. */
const collectionKeys = z.object({
  alarmCount: count,
  waitingCount: count,
  waitingUntil: z.iso
    .datetime()
    .nullable()
    .describe(
      'When the newest of the waiting keys was first reported: `device.approveKeys` approves those until then.',
    ),
})
export const collectionDetail = collectionSummary
  .extend({
    farmId: uuid,
    createdAt: z.iso.datetime(),
    templateDevice: z
      .object({ id: uuid, name: z.string() })
      .nullable()
      .describe('The template whose settings its new devices get.'),
    personality,
    sitePersonality: personality,
    keys: collectionKeys,
  })
  .meta({ id: 'Collection' })
export type CollectionDetail = z.infer<typeof collectionDetail>

const collectionFields = {
  name: objectName,
  vdiskId: uuid.nullable(),
  templateDeviceId: uuid.nullable(),
  personality,
  keyLearn: keyLearning,
  keyWithout: keylessAccess,
  bootSettings,
}
export const createCollectionInput = z.object({
  siteId: uuid,
  name: collectionFields.name,
  vdiskId: collectionFields.vdiskId.default(null),
  keyLearn: keyLearning.default(keyPolicyDefault.learn),
  keyWithout: keylessAccess.default(keyPolicyDefault.without),
})
export const updateCollectionInput = z
  .object(collectionFields)
  .partial()
  .extend({ collectionId: uuid, revision: seenRevision })
export const removeCollectionInput = z.object({ collectionId: uuid, revision: seenRevision.optional() })
