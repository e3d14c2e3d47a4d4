import { z } from 'zod'
import { base64, count, unixMs, untrustedText, uuid } from './uplink-values.ts'

/**
 * vDisk versions in edges' stores: what a desired state says of them, and what edges say back. UPLINK.md, "vDisk
 * versions".
 */

/** Of one edge at a time; an edge refuses a state with more. */
export const storeJobsMax = 64
/** Of one message; an inventory is as many messages as it takes. */
export const inventoryPageMax = 256
export const storeMessageSizeMax = 128 * 1024

export const deviceTypes = ['production', 'test', 'maintenance'] as const
export const writeCacheClasses = [
  'device_ram',
  'device_ram_overflow',
  'device_ram_local_disk',
  'edge',
  'edge_persistent',
  'private',
] as const
/** What has become of a write cache that cannot be written any more; `stopped` and `read_only` since it was full. */
export const writeCacheStates = ['read_only', 'stopped', 'lost'] as const
export const writeCacheFullChoices = ['stop', 'read_only'] as const
/** Those that edges do that do not say which (`heartbeat`): of the release before they said. */
export const unsaidJobKinds = ['seal', 'merge', 'verify', 'gc', 'delete', 'import', 'drop_layer'] as const
export const storeJobKinds = [...unsaidJobKinds, 'clear_profile', 'release_home', 'adopt'] as const
/** That one edge says that it does. */
export const saidJobKindsMax = 32
/** Of one version: eight classes of hardware, and all boots. */
export const bootProfilesMax = 9
export const givenBootFiles = ['parent', 'none'] as const
/** What an edge keeps of a device's writes over its restarts. */
export const layerClasses = ['edge_persistent', 'private'] as const
export const edgeVersionStates = ['present', 'importing', 'damaged', 'missing'] as const

/** Root of a manifest's tree: which bytes a version holds, whoever stores them. */
export const versionManifest = z.object({ root: base64(32), counter: count })

/** Where the writes of a vDisk's devices go. */
export const writeCacheOrder = z.object({
  /** One that an edge does not know is no boot, and never another class. */
  class: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  /** Of each device; absent: as much as there is. */
  limitBytes: count.min(1).optional(),
  /** What a device does whose cache is full. */
  full: z.enum(writeCacheFullChoices),
})

/** Work for the edge's store, given until its end is known; the same order again changes nothing. */
export const storeJobOrder = z.object({
  id: uuid,
  /** An edge reports one that it does not know as failed. */
  kind: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  /** Absent: all of the store (`gc`). */
  vdiskId: uuid.optional(),
  /** What is sealed, merged, verified, deleted, taken up or made by an import. */
  versionId: uuid.optional(),
  /** What a merge makes. */
  intoVersionId: uuid.optional(),
  /** Of the version that the job makes, for its manifest. */
  number: count.min(1).optional(),
  /** What the sealed version's layer lies above, or a merged one's manifest names as its parent; absent: a base. */
  parentVersionId: uuid.optional(),
  /** Whose writes are dropped, and of which class; or whose writes this edge keeps no more (`release_home`). */
  deviceId: uuid.optional(),
  layerClass: z.enum(layerClasses).optional(),
  /** Of an import: below the store's directory, as `diskPath`. */
  sourcePath: z.string().min(1).max(255).optional(),
  kernelPath: z.string().min(1).max(255).optional(),
  initrdPath: z.string().min(1).max(255).optional(),
  commandLine: z.string().max(1024).optional(),
  /** What an import or a seal boots with in place of what is on the disk: as the version below, or nothing. */
  bootFiles: z.enum(givenBootFiles).optional(),
})
export type StoreJobOrder = z.infer<typeof storeJobOrder>

const bundleFile = z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), sizeBytes: count.min(1) })

/** What a finished seal, merge or import has made, or an adoption has found. */
export const madeVersion = z.object({
  versionId: uuid,
  root: base64(32),
  counter: count,
  sizeBytes: count.min(1),
  /** Taken from the image; absent: as before. */
  commandLine: z
    .string()
    .max(1024)
    .regex(/^[\x20-\x7e]*$/)
    .optional(),
  kernel: bundleFile.optional(),
  initrd: bundleFile.optional(),
})
export type MadeVersion = z.infer<typeof madeVersion>

export const storeJobReport = z.object({
  id: uuid,
  state: z.enum(['running', 'done', 'failed', 'cancelled']),
  progressBytes: count,
  /** 0: not known yet. */
  totalBytes: count,
  /** Why it failed, or what it is doing. */
  message: z
    .string()
    .max(256)
    .regex(/^[\x20-\x7e]*$/)
    .optional(),
  made: madeVersion.optional(),
})
export type StoreJobReport = z.infer<typeof storeJobReport>

/** What an edge has learned of a version's boots; docs/boot-profile.md. */
export const bootProfile = z.object({
  /** The class of hardware whose boots it is of, or `any`. */
  hardware: untrustedText.min(1),
  boots: count.max(2 ** 32 - 1),
  /** What a device is told to read ahead: of 8190 units of 32 KiB, blocks of 4 KiB. */
  readAheadBytes: count.max(8190 * 32 * 1024),
  units: count.min(1).max(8190),
  /** Absent: it was carried from another version, and has not learned yet. */
  learnedUnixMs: unixMs.optional(),
})
export type BootProfileReport = z.infer<typeof bootProfile>

/** What the manifest of a version says beside its root: one that was imported by hand is known by it. */
export const imageFacts = z.object({
  name: untrustedText,
  /** Of the disk. */
  sizeBytes: count.min(1),
  createdUnixMs: unixMs,
  hasKernel: z.boolean(),
  /** For whom its store was made; absent: nobody said. */
  organizationId: uuid.optional(),
  parentVersionId: uuid.optional(),
})

export const storedVersion = z.object({
  versionId: uuid,
  state: z.enum(edgeVersionStates),
  /** Absent for a layer and for what is not whole. */
  root: base64(32).optional(),
  /** Absent where there is no whole manifest, and from edges of before this. */
  image: imageFacts.optional(),
  /** What its one device has written and is not sealed yet. */
  isLayer: z.boolean().optional(),
  /** Of a layer: its device is there and may write; absent: the edge does not know. */
  isWritten: z.boolean().optional(),
  ownBytes: count,
  sharedBytes: count,
  reclaimableBytes: count,
  /** When all of it was last read and found right. */
  checkedUnixMs: unixMs.optional(),
  /** Absent: none. */
  bootProfiles: z.array(bootProfile).max(bootProfilesMax).optional(),
})
export type StoredVersion = z.infer<typeof storedVersion>

export const storeFacts = z.object({
  id: uuid,
  publicKey: base64(32),
  format: count.min(1),
  /** Why it takes no writes, e.g. `read_only`, `full`, `locked`; absent: it does. */
  problem: untrustedText.optional(),
})
export type StoreFacts = z.infer<typeof storeFacts>

const storeMessageFields = z.object({
  /** Absent: the edge has none, and has done what needs none. */
  store: storeFacts.optional(),
  /** One page of all that the store holds. */
  inventory: z
    .object({
      /** Grows with each inventory of the edge, over its restarts, e.g. its clock or a number that it keeps. */
      scan: count,
      /** Whether all of this scan has been named now: what no page named is not in the store. */
      isLast: z.boolean(),
      versions: z.array(storedVersion).max(inventoryPageMax),
    })
    .optional(),
  jobs: z.array(storeJobReport).max(storeJobsMax),
})
export const storeMessage = storeMessageFields.refine(
  ({ store, inventory, jobs }) => store !== undefined || (inventory === undefined && jobs.length > 0),
  { path: ['store'], message: 'only what was done can be told without a store' },
)
export type StoreMessage = z.infer<typeof storeMessage>

/** Jobs whose end is kept, or that nobody knows: the edge need not speak of them any more. */
export const storeAnswer = z.object({ settledJobs: z.array(uuid).max(storeJobsMax) })
export type StoreAnswer = z.infer<typeof storeAnswer>
