import { z } from 'zod'
import { base64, count, unixMs, untrustedText, uuid } from './uplink-values.ts'

/**
 * vDisk versions in edges' stores: their part of a desired state, and the edges' reports. See UPLINK.md, "vDisk
 * versions".
 */

/** Jobs of one edge at a time; an edge refuses a state with more. */
export const storeJobsMax = 64
/** Entries of one message; an inventory takes as many messages as it needs. */
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
/** Why a write cache no longer accepts writes; `stopped` and `read_only` since it was full. */
export const writeCacheStates = ['read_only', 'stopped', 'lost'] as const
export const writeCacheFullChoices = ['stop', 'read_only'] as const
/** Kinds that an edge does which does not list them (`heartbeat`): those of the release before the list existed. */
export const unsaidJobKinds = ['seal', 'merge', 'verify', 'gc', 'delete', 'import', 'drop_layer'] as const
/** In the same list: the edge adds `modules` to the initramfs of an import. */
export const addsModules = 'import_modules'
export const importModulesMax = 16
/** In the same list: the edge imports uploads. */
export const importsUploads = 'import_upload'
/** In the same list: the edge fetches the image of an import from a URL. */
export const importsUrls = 'import_url'
export const importUrlSizeMax = 2048
/** In the same list: the edge imports empty disks, and takes the boot files of another version. */
export const importsEmptyDisks = 'import_empty'
export const storeJobKinds = [
  ...unsaidJobKinds,
  'clear_profile',
  'release_home',
  'adopt',
  'export',
  'pack',
  'fetch',
] as const
/** Pieces of a difference; the last one may be shorter. */
export const differencePieceSize = 4 * 1024 * 1024
/** Each has 32 bytes in the list of pieces: the list of the largest difference has 1 MiB. */
export const differencePiecesMax = 32 * 1024
export const differenceSizeMax = differencePieceSize * differencePiecesMax
/** The other edges of a site. */
export const differenceSourcesMax = 15
/** Differences that one edge keeps; it refuses a state with more. */
export const keptDifferencesMax = 256
export const exportFormats = ['raw', 'qcow2', 'vhdx'] as const
/** Kinds that one edge may list. */
export const saidJobKindsMax = 32
/** Profiles of one version: eight classes of hardware, and all boots. */
export const bootProfilesMax = 9
export const givenBootFiles = ['parent', 'none'] as const
/** Device writes that an edge keeps across restarts. */
export const layerClasses = ['edge_persistent', 'private'] as const
export const edgeVersionStates = ['present', 'importing', 'damaged', 'missing'] as const

const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/)

/** Root of a manifest's tree: identifies the bytes of a version, wherever it is stored. */
export const versionManifest = z.object({ root: base64(32), counter: count })

/** Where the writes of a vDisk's devices go. */
export const writeCacheOrder = z.object({
  /** A class that an edge does not know refuses the boot, and never falls back to another class. */
  class: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  /** Limits each device; absent: as much as there is. */
  limitBytes: count.min(1).optional(),
  full: z.enum(writeCacheFullChoices),
})

/** Work for the edge's store, repeated until its end is known; the same order again changes nothing. */
export const storeJobOrder = z.object({
  id: uuid,
  /** An edge reports an unknown kind as failed. */
  kind: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  /** Absent: the whole store (`gc`). */
  vdiskId: uuid.optional(),
  /** The version that is sealed, merged, verified, deleted, adopted, exported or made by an import. */
  versionId: uuid.optional(),
  /** The version that a merge makes. */
  intoVersionId: uuid.optional(),
  /** The number of the version that the job makes, for its manifest. */
  number: count.min(1).optional(),
  /** The version below the sealed version's layer, or the parent in a merged version's manifest; absent: a base. */
  parentVersionId: uuid.optional(),
  /**
   * The device whose writes are discarded, with their class, or whose writes this edge no longer keeps
   * (`release_home`).
   */
  deviceId: uuid.optional(),
  layerClass: z.enum(layerClasses).optional(),
  /** For an import: relative to the store's directory, like `diskPath`. */
  sourcePath: z.string().min(1).max(255).optional(),
  /** Instead: the edge fetches it from `/edge/v1/uploads/{uploadId}`. */
  uploadId: uuid.optional(),
  /** Instead: the edge fetches it from there. */
  sourceUrl: z.string().max(importUrlSizeMax).optional(),
  /** Of an upload; without any other source: of the empty disk that the import makes. */
  sourceSizeBytes: count.min(1).optional(),
  /** Other bytes are refused, in hexadecimal digits. */
  sourceSha256: sha256Hex.optional(),
  kernelPath: z.string().min(1).max(255).optional(),
  initrdPath: z.string().min(1).max(255).optional(),
  commandLine: z.string().max(1024).optional(),
  /** The version in the store whose kernel and initramfs an import takes. */
  bootVersionId: uuid.optional(),
  /** Drivers that an import adds to the initramfs that it makes. */
  modules: z
    .array(z.string().regex(/^[A-Za-z0-9_-]{1,56}$/))
    .max(importModulesMax)
    .optional(),
  /** Boot files of an import or a seal that replace those on the disk: the same as the version below, or none. */
  bootFiles: z.enum(givenBootFiles).optional(),
  /** Of the file that an export writes. */
  format: z.enum(exportFormats).optional(),
  /** The difference that a `pack` makes or a `fetch` gets. */
  differenceId: uuid.optional(),
  /** The version that the difference is based on; absent: none. */
  baseVersionId: uuid.optional(),
  /** For a `pack`: the difference is also sent to the control plane. */
  toControlPlane: z.boolean().optional(),
  /** The fetched version: another one is refused. */
  manifest: versionManifest.optional(),
  differenceSizeBytes: count.min(1).max(differenceSizeMax).optional(),
  /** SHA-256 of the difference's list of pieces, in hexadecimal digits. */
  differenceListSha256: sha256Hex.optional(),
  /** Edges of the site that have the difference, or get it: asked in this order, before the control plane. */
  sources: z.array(uuid).max(differenceSourcesMax).optional(),
  fromControlPlane: z.boolean().optional(),
  /** Limit for what the job gets or sends; absent: none. */
  rateBytesPerSecond: count.min(1).optional(),
})
export type StoreJobOrder = z.infer<typeof storeJobOrder>

const bundleFile = z.object({ sha256: sha256Hex, sizeBytes: count.min(1) })

/** The result of a finished seal, merge or import, or of an adoption. */
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
  /** What the image's manifest says of it for people; absent from edges older than this field. */
  note: z.string().max(512).optional(),
  kernel: bundleFile.optional(),
  initrd: bundleFile.optional(),
})
export type MadeVersion = z.infer<typeof madeVersion>

/** The result of a finished `pack`. */
export const packedDifference = z.object({
  sizeBytes: count.min(1).max(differenceSizeMax),
  listSha256: sha256Hex,
})
export type PackedDifference = z.infer<typeof packedDifference>

export const storeJobReport = z.object({
  id: uuid,
  state: z.enum(['running', 'done', 'failed', 'cancelled']),
  progressBytes: count,
  /** 0: not known yet. */
  totalBytes: count,
  /** With `running`: it has not been started, and waits for what `message` says. */
  isWaiting: z.boolean().optional(),
  /** Why it failed, what it waits for, or what it did. */
  message: z
    .string()
    .max(256)
    .regex(/^[\x20-\x7e]*$/)
    .optional(),
  made: madeVersion.optional(),
  packed: packedDifference.optional(),
})
export type StoreJobReport = z.infer<typeof storeJobReport>

/** The boot profile that an edge learned from a version's boots; see docs/reference/boot-profile.md. */
export const bootProfile = z.object({
  /** The class of hardware whose boots it comes from, or `any`. */
  hardware: untrustedText.min(1),
  boots: count.max(2 ** 32 - 1),
  /** Bytes that a device reads ahead: 4 KiB blocks out of 8190 units of 32 KiB. */
  readAheadBytes: count.max(8190 * 32 * 1024),
  units: count.min(1).max(8190),
  /** Absent: it was carried over from another version, and has not learned yet. */
  learnedUnixMs: unixMs.optional(),
})
export type BootProfileReport = z.infer<typeof bootProfile>

/** The content of a version's manifest besides its root: it identifies a version that was imported by hand. */
export const imageFacts = z.object({
  name: untrustedText,
  /** The disk's size. */
  sizeBytes: count.min(1),
  createdUnixMs: unixMs,
  hasKernel: z.boolean(),
  /** The organization that its store was made for; absent: unknown. */
  organizationId: uuid.optional(),
  parentVersionId: uuid.optional(),
})

export const storedVersion = z.object({
  versionId: uuid,
  state: z.enum(edgeVersionStates),
  /** Absent for a layer and for an incomplete version. */
  root: base64(32).optional(),
  /** Absent without a complete manifest, and from edges older than this field. */
  image: imageFacts.optional(),
  /** Unsealed writes of its one device. */
  isLayer: z.boolean().optional(),
  /** For a layer: its device is there and may write; absent: the edge does not know. */
  isWritten: z.boolean().optional(),
  ownBytes: count,
  sharedBytes: count,
  reclaimableBytes: count,
  /** When all of it was last read and found correct. */
  checkedUnixMs: unixMs.optional(),
  /** Absent: none. */
  bootProfiles: z.array(bootProfile).max(bootProfilesMax).optional(),
})
export type StoredVersion = z.infer<typeof storedVersion>

export const storeFacts = z.object({
  id: uuid,
  publicKey: base64(32),
  format: count.min(1),
  /** Why it accepts no writes, e.g. `read_only`, `full`, `locked`; absent: it does. */
  problem: untrustedText.optional(),
})
export type StoreFacts = z.infer<typeof storeFacts>

const storeMessageFields = z.object({
  /** Absent: the edge has no store, and has done no job that needs none. */
  store: storeFacts.optional(),
  /** One page of everything that the store holds. */
  inventory: z
    .object({
      /** Grows with each inventory of the edge, also across restarts, e.g. its clock or a stored counter. */
      scan: count,
      /** True on the last page of this scan: a version that no page named is not in the store. */
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

/** Jobs whose end is stored, or that nobody knows: the edge need not report them any more. */
export const storeAnswer = z.object({ settledJobs: z.array(uuid).max(storeJobsMax) })
export type StoreAnswer = z.infer<typeof storeAnswer>
