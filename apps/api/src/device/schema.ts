import { listedOutcomes } from '@bootfarm/proto/boot-phases'
import { layerClasses, powerOrders } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { deviceMenuView, setMenuOfDeviceInput } from '../boot-menu/schema.ts'
import { setOfDeviceInput } from '../rules/boot-programs.ts'
import { deviceKeyLabel, fingerprint, keyDecisions, keyLearning, keylessAccess } from '../rules/device/device-key.ts'
import { deviceState } from '../rules/device/device-state.ts'
import { deviceWait } from '../rules/device/device-wait.ts'
import { inheritedPersonality, personality } from '../rules/device/personality.ts'
import { writeCacheView } from '../rules/device/write-cache.ts'
import { instantOf, instantOrNull, listSort, text } from '../rules/list-sort.ts'
import {
  deviceName,
  devicesPerSiteMax,
  deviceType,
  pageInput,
  pageOf,
  seenRevision,
  tag,
  tags,
  writtenMac,
} from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { traceparentField } from '../rules/traceparent-field.ts'
import { csvSizeMax } from './device-csv.ts'

export const deviceSort = listSort(
  {
    name: text('name'),
    createdAt: instantOf('createdAt'),
    lastBootStartedAt: instantOrNull('lastBootStartedAt'),
  },
  'name',
)
export const deviceListInput = z.object({
  ...pageInput,
  sort: deviceSort.input,
  search: z.string().trim().max(64).optional().describe('Part of the name or of the MAC address, upper or lower case.'),
  farmId: uuid.optional(),
  siteId: uuid.optional(),
  collectionId: uuid.optional(),
  tag: tag.optional(),
  enabled: z.boolean().optional(),
  deviceType: deviceType.optional(),
  lastOutcome: z
    .enum([...listedOutcomes, 'booting', 'never'])
    .optional()
    .describe('`booting`: its last boot is in progress; `never`: it has not booted yet.'),
  writeCache: z
    .enum(['warning', 'critical', 'full'])
    .optional()
    .describe('`warning`: 80 % or more of it is used; `critical`: 95 % or more; `full`.'),
  key: z
    .enum([...deviceKeyLabel.options, 'alarm', 'unjudged'])
    .optional()
    .describe(
      'The label of its key; `alarm`: a person has to decide; `unjudged`: no edge has reported on its key yet.',
    ),
  waitsFor: z
    .enum(['lost_disk'])
    .optional()
    .describe('`lost_disk`: it has lost its disk for good, and waits for a restart.'),
})

/** An order for a running device, shown for some minutes. */
const powerOrderView = z.object({
  id: uuid,
  order: z.enum(powerOrders),
  state: z
    .enum(['waiting', 'taken', 'expired'])
    .describe('`waiting`: until the device reports next; `expired`: it did not, in time.'),
  requestedAt: instant,
  expiresAt: instant,
  takenAt: instant.nullable(),
})
export type PowerOrderView = z.infer<typeof powerOrderView>

const deviceSummary = z
  .object({
    id: uuid,
    name: z.string(),
    mac: z.string(),
    enabled: z.boolean(),
    deviceType,
    tags: z.array(z.string()),
    revision: seenRevision,
    siteId: uuid,
    siteName: z.string(),
    collectionId: uuid,
    collectionName: z.string(),
    vdisk: z
      .object({ id: uuid, name: z.string(), versionNumber: count })
      .nullable()
      .describe(
        'The version of its next boot; null if its collection has no vDisk or the vDisk has no version for it.',
      ),
    lastBoot: z
      .object({
        id: uuid,
        startedAt: instant,
        outcome: z.enum(listedOutcomes).nullable().describe('Null while the boot lasts.'),
        totalUs: count,
        simulated: z.boolean(),
        generated: z.boolean(),
        writeCache: writeCacheView.nullable(),
        reportedAt: instant.describe('When its last report arrived.'),
      })
      .nullable(),
    now: deviceState,
    waitsFor: deviceWait
      .nullable()
      .describe(
        'Why it stands still, or may, or does not start: the edge with its writes is away, or its disk is lost for good.',
      ),
    keyLabel: deviceKeyLabel
      .nullable()
      .describe(
        'How it is known by the key in its TPM; null: no edge has judged it. An alarm stays until a person decides.',
      ),
    claimedKey: fingerprint
      .nullable()
      .describe('The fingerprint that waits for a decision, or that it proved instead of the known one.'),
    powerOrder: powerOrderView.nullable().describe('The newest one.'),
  })
  .meta({ id: 'DeviceSummary' })
export type DeviceSummary = z.infer<typeof deviceSummary>
export const devicePage = pageOf(deviceSummary)

export const deviceGetInput = z.object({ deviceId: uuid })
/** The writes of a device that an edge keeps across restarts, according to the device's boots. */
const deviceLayer = z.object({
  class: z.enum(layerClasses),
  usedBytes: count.describe('Space at the edge, which is freed and lost when it is dropped.'),
  edge: z.object({ id: uuid, name: z.string() }),
  version: z
    .object({ id: uuid, number: count, vdiskId: uuid, vdiskName: z.string() })
    .nullable()
    .describe('The version below; null: it is gone.'),
  currentNumber: count
    .nullable()
    .describe('The version that the device would boot without it; null: none of that vDisk.'),
  releasesBehind: count
    .nullable()
    .describe('How many versions for production devices were released after it; null if unknown.'),
  dropJobId: uuid.nullable(),
})
export type DeviceLayer = z.infer<typeof deviceLayer>

/** The one edge that keeps what the device writes beyond its boots. */
const deviceHome = z.object({
  edge: z.object({
    id: uuid,
    name: z.string(),
    isRemoved: z.boolean().describe('Gone for good: what it has is lost once another edge is chosen.'),
  }),
  next: z
    .object({ id: uuid, name: z.string(), jobId: uuid.nullable() })
    .nullable()
    .describe('The next write owner, once `edge` has reported that it keeps nothing of the device.'),
  since: instant.nullable().describe('Null: since before this was kept.'),
  asked: z
    .object({
      jobId: uuid,
      state: z.enum(['queued', 'running', 'failed', 'cancelled']),
      askedBy: z.string(),
      askedAt: instant,
      endedAt: instant.nullable(),
      untrusted: z.object({ message: z.string().nullable() }).describe("In the edge's words."),
    })
    .nullable()
    .describe('The last release job; null: none, or it is done.'),
  keeps: z
    .string()
    .nullable()
    .describe('The data kept there, if known, e.g. "4096 bytes of a private image"; null: nothing.'),
})
export type DeviceHome = z.infer<typeof deviceHome>

const deviceKeyView = z.object({
  known: fingerprint.nullable().describe('The fingerprint that is known, 64 hexadecimal digits.'),
  keyless: z.boolean().describe('A person has decided that it has no key.'),
  revision: count.describe('Counts decisions: `device.decideKey` names the one that the caller has seen.'),
  decidedBy: z.string().nullable().describe('Null: an edge accepted the key at the first boot.'),
  decidedAt: instant.nullable(),
  claim: z
    .object({ key: fingerprint.nullable(), bootId: uuid.nullable(), since: instant })
    .nullable()
    .describe('What waits, or what an alarm is about: the boot that proved it, and when it was first reported.'),
  policy: z.object({ learn: keyLearning, without: keylessAccess }).describe("Its collection's."),
})

export const deviceDetail = deviceSummary
  .extend({
    key: deviceKeyView,
    home: deviceHome.nullable().describe('Null: none was chosen, since nothing that it writes outlives its boots.'),
    siteEdges: z
      .array(z.object({ id: uuid, name: z.string() }))
      .describe('The edges of its site that were not removed, by name, at most 100: one of them can keep its writes.'),
    layer: deviceLayer.nullable(),
    bootMenu: deviceMenuView,
    bootProgramSets: z
      .object({
        device: z.string().nullable(),
        collection: z.string().nullable(),
        site: z.string().nullable(),
      })
      .describe(
        "Its own, its collection's and its site's; the first that is not null applies, otherwise each edge's first.",
      ),
    createdAt: instant,
    farmId: uuid,
    ownVdisk: z
      .object({ id: uuid, name: z.string() })
      .nullable()
      .describe("The vDisk that it boots instead of its collection's."),
    personality: personality.describe('Its own pairs.'),
    inheritedPersonality: inheritedPersonality.describe('The resulting values, by name.'),
    isTemplate: z.boolean().describe('New devices of its collection get its settings.'),
    powerOn: z.object({ id: uuid, requestedAt: instant, expiresAt: instant }).nullable(),
  })
  .meta({ id: 'Device' })
export type DeviceDetail = z.infer<typeof deviceDetail>

export const dropWritesInput = z.object({
  deviceId: uuid,
  class: z
    .enum(layerClasses)
    .describe('The layer that the caller has seen: one that was created meanwhile must not be dropped.'),
})
export const dropWritesResult = z.object({ jobId: uuid }).meta({ id: 'DropWritesJob' })

export const moveHomeInput = z.object({
  deviceId: uuid,
  edgeId: uuid.describe("An edge of the device's site."),
  giveUp: z
    .boolean()
    .default(false)
    .describe('The writes that the removed edge may have kept of the device are given up.'),
})
/** The work that lets go of it; null: it is so already. */
export const moveHomeResult = z.object({ jobId: uuid.nullable() }).meta({ id: 'MoveHomeJob' })

export const decideKeyInput = z.object({
  deviceId: uuid,
  decision: z
    .enum(keyDecisions)
    .describe(
      "`approve`: `claimedKey` is the device's key; `keep`: it is not, what is known stays; `forget`: nothing is known any more; `keyless`: the device has no key.",
    ),
  keyRevision: z
    .number()
    .int()
    .nonnegative()
    .max(2 ** 31 - 1)
    .describe('`key.revision` of the device that the caller has seen.'),
  claimedKey: fingerprint
    .nullable()
    .default(null)
    .describe('To approve: the fingerprint that the caller has compared.'),
})
export const decideKeyResult = z
  .object({ keyLabel: deviceKeyLabel.nullable(), keyRevision: count })
  .meta({ id: 'DeviceKeyDecision' })
export type ChangedKey = z.infer<typeof decideKeyResult>

export const approveKeysInput = z.object({
  collectionId: uuid,
  claimedUntil: instant.describe(
    '`keys.waitingUntil` and `keys.waitingCount` of the collection that the caller has seen.',
  ),
  waitingCount: count.min(1).max(devicesPerSiteMax),
})

export const bootAgainInput = z.object({ deviceId: uuid, traceparent: traceparentField })
export const bootAgainResult = z.object({ powerOnId: uuid, expiresAt: instant }).meta({ id: 'PowerOnOrder' })

export const powerOrderInput = z.object({
  deviceId: uuid,
  order: z.enum(powerOrders),
  traceparent: traceparentField,
})
export const powerOrderResult = z.object({ powerOrderId: uuid, expiresAt: instant }).meta({ id: 'PowerOrder' })

const deviceFields = {
  name: deviceName,
  mac: writtenMac,
  enabled: z.boolean(),
  tags,
  personality,
  vdiskId: uuid.nullable(),
  deviceType,
}
export const createDeviceInput = z
  .object(deviceFields)
  .partial()
  .extend({
    collectionId: uuid,
    name: deviceFields.name,
    mac: deviceFields.mac,
    templateDeviceId: uuid
      .nullish()
      .describe('The template if no settings are given; null: none, even if the collection names one.'),
  })
export const updateDeviceInput = z.object(deviceFields).partial().extend({ deviceId: uuid, revision: seenRevision })
export const removeDeviceInput = z.object({ deviceId: uuid, revision: seenRevision.optional() })

/** Many devices at once: what will become of each is shown first, and then all of them change, or none. */

export const bulkMax = 1_000
const powerBulkMax = 200
/** Rows that a preview shows; its counts are of all. */
export const previewRowsMax = 1_000

const deviceIds = z.array(uuid).min(1).max(bulkMax)

export const deviceFilterInput = deviceListInput.omit({ cursor: true, limit: true })
export const deviceIdsResult = z.object({
  ids: z.array(uuid),
  isCut: z.boolean().describe('The filter matches more than can be changed at once.'),
})

export const changeManyInput = z.object({
  deviceIds,
  preview: z.boolean().default(false).describe('Only previews the result.'),
  collectionId: uuid.optional(),
  enabled: z.boolean().optional(),
  addTags: tags.optional(),
  removeTags: tags.optional(),
  vdiskId: uuid.nullable().optional().describe("Null: its collection's."),
  deviceType: deviceType.optional(),
  bootProgramSet: setOfDeviceInput.shape.bootProgramSet.optional(),
  menu: setMenuOfDeviceInput.shape.menu.optional(),
})
export const removeManyInput = z.object({ deviceIds })
export const powerManyInput = z.object({
  deviceIds: z.array(uuid).min(1).max(powerBulkMax),
  order: z.enum(['power_on', 'power_off', 'restart']),
  traceparent: traceparentField,
})
export const manyDone = z.object({ count }).meta({ id: 'ChangedCount' })

const plannedRow = z.object({
  line: count.nullable().describe('Line of the file; null for a selection.'),
  deviceId: uuid.nullable(),
  name: z.string(),
  mac: z.string(),
  kind: z.enum(['created', 'changed', 'unchanged', 'refused']),
  changes: z.array(z.string()).describe('Names of the fields that differ, and what happens besides.'),
  problems: z.array(z.string()),
})
export const planResult = z
  .object({
    applied: z.boolean().describe('The change was applied: never with a problem in any row.'),
    createdCount: count,
    changedCount: count,
    unchangedCount: count,
    refusedCount: count,
    rows: z.array(plannedRow).describe('At most 1,000, those with problems first.'),
  })
  .meta({ id: 'DeviceChangePlan' })
export type PlanResult = z.infer<typeof planResult>

export const importCsvInput = z.object({
  siteId: uuid,
  csv: z.string().min(1).max(csvSizeMax, 'The file is too large.'),
  preview: z.boolean().default(true).describe('Only previews the result.'),
})
