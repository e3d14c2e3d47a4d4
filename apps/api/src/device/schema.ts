import { bootOutcomes } from '@bootfarm/proto/boot-phases'
import { layerClasses, powerOrders } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { deviceMenuView, setMenuOfDeviceInput } from '../boot-menu/schema.ts'
import { setOfDeviceInput } from '../rules/boot-programs.ts'
import { deviceKeyLabel, fingerprint, keyDecisions, keyLearning, keylessAccess } from '../rules/device-key.ts'
import { deviceState } from '../rules/device-state.ts'
import { deviceWait } from '../rules/device-wait.ts'
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
import { inheritedPersonality, personality } from '../rules/personality.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { writeCacheView } from '../rules/write-cache.ts'
import { csvSizeMax } from './device-csv.ts'

export const deviceListInput = z.object({
  ...pageInput,
  /** Part of the name or of the MAC address, upper or lower case. */
  search: z.string().trim().max(64).optional(),
  siteId: uuid.optional(),
  collectionId: uuid.optional(),
  tag: tag.optional(),
  enabled: z.boolean().optional(),
  deviceType: deviceType.optional(),
  /** `booting`: its last boot is in progress; `never`: it has not booted yet. */
  lastOutcome: z.enum([...bootOutcomes, 'booting', 'never']).optional(),
  /** `warning`: 80 % or more of it is used; `critical`: 95 % or more; `full`. */
  writeCache: z.enum(['warning', 'critical', 'full']).optional(),
  /** The label of its key; `alarm`: a person has to decide; `unjudged`: no edge has reported on its key yet. */
  key: z.enum([...deviceKeyLabel.options, 'alarm', 'unjudged']).optional(),
  /** `lost_disk`: it has lost its disk for good, and waits for a restart. */
  waitsFor: z.enum(['lost_disk']).optional(),
})

/** An order for a running device, shown for some minutes. */
const powerOrderView = z.object({
  id: uuid,
  order: z.enum(powerOrders),
  /** `waiting`: until the device reports next; `expired`: it did not, in time. */
  state: z.enum(['waiting', 'taken', 'expired']),
  requestedAt: instant,
  expiresAt: instant,
  takenAt: instant.nullable(),
})
export type PowerOrderView = z.infer<typeof powerOrderView>

const deviceSummary = z.object({
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
  /** The version of its next boot; null if its collection has no vDisk or the vDisk has no version for it. */
  vdisk: z.object({ id: uuid, name: z.string(), versionNumber: count }).nullable(),
  lastBoot: z
    .object({
      id: uuid,
      startedAt: instant,
      /** Null while the boot lasts. */
      outcome: z.enum(bootOutcomes).nullable(),
      totalUs: count,
      simulated: z.boolean(),
      generated: z.boolean(),
      writeCache: writeCacheView.nullable(),
      /** When its last report arrived. */
      reportedAt: instant,
    })
    .nullable(),
  now: deviceState,
  /** Why it stands still, or may, or does not start: the edge with its writes is away, or its disk is lost for good. */
  waitsFor: deviceWait.nullable(),
  /** How it is known by the key in its TPM; null: no edge has judged it. An alarm stays until a person decides. */
  keyLabel: deviceKeyLabel.nullable(),
  /** The fingerprint that waits for a decision, or that it proved instead of the known one. */
  claimedKey: fingerprint.nullable(),
  /** The newest one. */
  powerOrder: powerOrderView.nullable(),
})
export type DeviceSummary = z.infer<typeof deviceSummary>
export const devicePage = pageOf(deviceSummary)

export const deviceGetInput = z.object({ deviceId: uuid })
/** The writes of a device that an edge keeps across restarts, according to the device's boots. */
const deviceLayer = z.object({
  class: z.enum(layerClasses),
  /** Space at the edge, which is freed and lost when it is dropped. */
  usedBytes: count,
  edge: z.object({ id: uuid, name: z.string() }),
  /** The version below; null: it is gone. */
  version: z.object({ id: uuid, number: count, vdiskId: uuid, vdiskName: z.string() }).nullable(),
  /** The version that the device would boot without it; null: none of that vDisk. */
  currentNumber: count.nullable(),
  /** How many versions for production devices were released after it; null if unknown. */
  releasesBehind: count.nullable(),
  dropJobId: uuid.nullable(),
})
export type DeviceLayer = z.infer<typeof deviceLayer>

/** The one edge that keeps what the device writes beyond its boots. */
const deviceHome = z.object({
  edge: z.object({
    id: uuid,
    name: z.string(),
    /** Gone for good: what it has is lost once another edge is chosen. */
    isRemoved: z.boolean(),
  }),
  /** The next write owner, once `edge` has reported that it keeps nothing of the device. */
  next: z.object({ id: uuid, name: z.string(), jobId: uuid.nullable() }).nullable(),
  /** Null: since before this was kept. */
  since: instant.nullable(),
  /** The last release job; null: none, or it is done. */
  asked: z
    .object({
      jobId: uuid,
      state: z.enum(['queued', 'running', 'failed', 'cancelled']),
      askedBy: z.string(),
      askedAt: instant,
      endedAt: instant.nullable(),
      /** In the edge's words. */
      untrusted: z.object({ message: z.string().nullable() }),
    })
    .nullable(),
  /** The data kept there, if known, e.g. "4096 bytes of a private image"; null: nothing. */
  keeps: z.string().nullable(),
})
export type DeviceHome = z.infer<typeof deviceHome>

const deviceKeyView = z.object({
  /** The fingerprint that is known, 64 hexadecimal digits. */
  known: fingerprint.nullable(),
  /** A person has decided that it has no key. */
  keyless: z.boolean(),
  /** Counts decisions: `device.decideKey` names the one that the caller has seen. */
  revision: count,
  /** Null: an edge accepted the key at the first boot. */
  decidedBy: z.string().nullable(),
  decidedAt: instant.nullable(),
  /** What waits, or what an alarm is about: the boot that proved it, and when it was first reported. */
  claim: z.object({ key: fingerprint.nullable(), bootId: uuid.nullable(), since: instant }).nullable(),
  /** Its collection's. */
  policy: z.object({ learn: keyLearning, without: keylessAccess }),
})

export const deviceDetail = deviceSummary.extend({
  key: deviceKeyView,
  /** Null: none was chosen, since nothing that it writes outlives its boots. */
  home: deviceHome.nullable(),
  /** The edges of its site that were not removed, by name, at most 100: one of them can keep its writes. */
  siteEdges: z.array(z.object({ id: uuid, name: z.string() })),
  layer: deviceLayer.nullable(),
  bootMenu: deviceMenuView,
  /** Its own, its collection's and its site's; the first that is not null applies, otherwise each edge's first. */
  bootProgramSets: z.object({
    device: z.string().nullable(),
    collection: z.string().nullable(),
    site: z.string().nullable(),
  }),
  createdAt: instant,
  farmId: uuid,
  /** The vDisk that it boots instead of its collection's. */
  ownVdisk: z.object({ id: uuid, name: z.string() }).nullable(),
  /** Its own pairs. */
  personality,
  /** The resulting values, by name. */
  inheritedPersonality,
  /** New devices of its collection get its settings. */
  isTemplate: z.boolean(),
  powerOn: z.object({ id: uuid, requestedAt: instant, expiresAt: instant }).nullable(),
})
export type DeviceDetail = z.infer<typeof deviceDetail>

export const dropWritesInput = z.object({
  deviceId: uuid,
  /** The layer that the caller has seen: one that was created meanwhile must not be dropped. */
  class: z.enum(layerClasses),
})
export const dropWritesResult = z.object({ jobId: uuid })

export const moveHomeInput = z.object({
  deviceId: uuid,
  /** An edge of the device's site. */
  edgeId: uuid,
  /** The writes that the removed edge may have kept of the device are given up. */
  giveUp: z.boolean().default(false),
})
/** The work that lets go of it; null: it is so already. */
export const moveHomeResult = z.object({ jobId: uuid.nullable() })

export const decideKeyInput = z.object({
  deviceId: uuid,
  /**
   * `approve`: `claimedKey` is the device's key; `keep`: it is not, what is known stays; `forget`: nothing is known any
   * more; `keyless`: the device has no key.
   */
  decision: z.enum(keyDecisions),
  /** `key.revision` of the device that the caller has seen. */
  keyRevision: z
    .number()
    .int()
    .nonnegative()
    .max(2 ** 31 - 1),
  /** To approve: the fingerprint that the caller has compared. */
  claimedKey: fingerprint.nullable().default(null),
})
export const decideKeyResult = z.object({ keyLabel: deviceKeyLabel.nullable(), keyRevision: count })
export type ChangedKey = z.infer<typeof decideKeyResult>

export const approveKeysInput = z.object({
  collectionId: uuid,
  /** `keys.waitingUntil` and `keys.waitingCount` of the collection that the caller has seen. */
  claimedUntil: instant,
  waitingCount: count.min(1).max(devicesPerSiteMax),
})

export const bootAgainInput = z.object({ deviceId: uuid })
export const bootAgainResult = z.object({ powerOnId: uuid, expiresAt: instant })

export const powerOrderInput = z.object({ deviceId: uuid, order: z.enum(powerOrders) })
export const powerOrderResult = z.object({ powerOrderId: uuid, expiresAt: instant })

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
  /** The template if no settings are given; null: none, even if the collection names one. */
  templateDeviceId: uuid.nullish(),
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
  /** The filter matches more than can be changed at once. */
  isCut: z.boolean(),
})

export const changeManyInput = z.object({
  deviceIds,
  /** Only previews the result. */
  preview: z.boolean().default(false),
  collectionId: uuid.optional(),
  enabled: z.boolean().optional(),
  addTags: tags.optional(),
  removeTags: tags.optional(),
  /** Null: its collection's. */
  vdiskId: uuid.nullable().optional(),
  deviceType: deviceType.optional(),
  bootProgramSet: setOfDeviceInput.shape.bootProgramSet.optional(),
  menu: setMenuOfDeviceInput.shape.menu.optional(),
})
export const removeManyInput = z.object({ deviceIds })
export const powerManyInput = z.object({
  deviceIds: z.array(uuid).min(1).max(powerBulkMax),
  order: z.enum(['power_on', 'power_off', 'restart']),
})
export const manyDone = z.object({ count })

const plannedRow = z.object({
  /** Line of the file; null for a selection. */
  line: count.nullable(),
  deviceId: uuid.nullable(),
  name: z.string(),
  mac: z.string(),
  kind: z.enum(['created', 'changed', 'unchanged', 'refused']),
  /** Names of the fields that differ, and what happens besides. */
  changes: z.array(z.string()),
  problems: z.array(z.string()),
})
export const planResult = z.object({
  /** The change was applied: never with a problem in any row. */
  applied: z.boolean(),
  createdCount: count,
  changedCount: count,
  unchangedCount: count,
  refusedCount: count,
  /** At most 1,000, those with problems first. */
  rows: z.array(plannedRow),
})
export type PlanResult = z.infer<typeof planResult>

export const importCsvInput = z.object({
  siteId: uuid,
  csv: z.string().min(1).max(csvSizeMax, 'The file is too large.'),
  /** Only previews the result. */
  preview: z.boolean().default(true),
})
