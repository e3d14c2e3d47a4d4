import { edgeVersionStates, writeCacheClasses, writeCacheFullChoices } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { objectName, objectNote, seenRevision, tags } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

/** The steps of a vDisk's versions: docs/guides/versions.md. */

const sizeBytesMax = 64 * 1024 ** 4
/** Below this a device would stop before it has booted. */
const writeCacheLimitBytesMin = 16 * 1024 ** 2

const commandLineSizeMax = 1_024
/** Like the edge's `isCommandLine`: iPXE has no quotes for these. */
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
const storePath = z
  .string()
  .trim()
  .min(1, 'Enter the path in the store directory.')
  .max(255)
  .superRefine((path, { addIssue }) => {
    const problem = storePathProblem(path)
    if (problem) addIssue(`${problem}. Enter the path as it is in the store directory, for example imports/linux.raw.`)
  })
export const commandLineText = z
  .string()
  .trim()
  .max(commandLineSizeMax)
  .regex(/^[\x20-\x7e]*$/, 'A kernel command line is one line of printable ASCII.')
  .refine(
    (text) => !endsScript.test(text),
    'A kernel command line cannot contain ${, the words || or && or ;, or a word that begins with #, because iPXE interprets them.',
  )
  .default('')

/** A change of what a vDisk's devices boot is refused if the vDisk has another revision by now. */
const ofVersion = { versionId: uuid, vdiskRevision: seenRevision }
const ofVdisk = { vdiskId: uuid, revision: seenRevision }

export const startMaintenanceInput = z.object({
  /** The content with which the new version starts. */
  ...ofVersion,
  /** The one that writes it: a maintenance device that boots this vDisk. */
  deviceId: uuid,
  note: objectNote.default(''),
})
export const sealInput = z.object({
  versionId: uuid,
  revision: seenRevision,
  /**
   * `image`: kernel, initramfs and command line are taken from the disk; `parent`: those of the version below; `none`:
   * it has none.
   */
  bootFiles: z.enum(['image', 'parent', 'none']).default('image'),
})
export const discardMaintenanceInput = z.object({ versionId: uuid, revision: seenRevision })
export const promoteInput = z.object({
  ...ofVersion,
  /** Absent: now. */
  releaseAt: instant.optional(),
})
export const cancelReleaseInput = z.object(ofVdisk)
export const revertInput = z.object(ofVersion)
export const overrideInput = z.object(ofVersion)
export const clearOverrideInput = z.object(ofVdisk)
export const mergeInput = z.object({
  ...ofVersion,
  /** `base`: it depends on no other; `update`: it follows the base that the version derives from. */
  into: z.enum(['base', 'update']),
  note: objectNote.default(''),
  labels: tags.default([]),
})
export const importInput = z.object({
  vdiskId: uuid,
  edgeId: uuid,
  /** A raw image, e.g. `imports/linux.raw`. */
  sourcePath: storePath,
  /** Null, and an empty command line: taken from the image. */
  kernelPath: storePath.nullable().default(null),
  initrdPath: storePath.nullable().default(null),
  commandLine: commandLineText,
  /** `none`: a disk with a boot loader. */
  bootFiles: z.enum(['image', 'none']).default('image'),
  note: objectNote.default(''),
  labels: tags.default([]),
  state: z.enum(['test', 'released']).default('test'),
})
export const adoptInput = z
  .object({
    edgeId: uuid,
    /** Id of the image's version, here and at its edge. */
    versionId: uuid,
    /** The vDisk of the version; null: a new vDisk of the edge's farm, with this name. */
    vdiskId: uuid.nullable().default(null),
    farmId: uuid.nullable().default(null),
    name: objectName.nullable().default(null),
    note: objectNote.default(''),
    labels: tags.default([]),
    state: z.enum(['test', 'released']).default('test'),
  })
  .refine(({ vdiskId, farmId, name }) => (vdiskId === null) === (farmId !== null && name !== null), {
    path: ['vdiskId'],
    message: 'say either a vDisk, or the farm and the name of a new one',
  })
export const updateWriteCacheInput = z.object({
  ...ofVdisk,
  class: z.enum(writeCacheClasses),
  /** Per device; null: no limit. */
  limitBytes: z.number().int().min(writeCacheLimitBytesMin).max(sizeBytesMax).nullable(),
  full: z.enum(writeCacheFullChoices),
})

export const changedVersion = z.object({
  id: uuid,
  name: z.string(),
  number: count,
  revision: seenRevision,
  /** The revision that a further change of the vDisk's versions needs. */
  vdiskRevision: seenRevision,
})
export type ChangedVersion = z.infer<typeof changedVersion>
export const discarded = z.object({ name: z.string() })
/** With the jobs that were ordered from the edges' stores. */
export const versionWithJobs = changedVersion.extend({ jobIds: z.array(uuid) })
export type VersionWithJobs = z.infer<typeof versionWithJobs>

const versionActions = ['promote', 'revert', 'override', 'merge', 'delete'] as const
export const clearBootProfileInput = z.object({ versionId: uuid })
export const previewInput = z.object({ versionId: uuid, action: z.enum(versionActions) })
const deviceTally = z.object({
  count,
  /** The first of them, by name. */
  names: z.array(z.string()),
})
export const versionPreview = z.object({
  action: z.enum(versionActions),
  /** Why it would be refused; empty: it would not. */
  refusals: z.array(z.string()),
  /** The version that production devices boot before and after it; null: none. */
  before: z.object({ versionId: uuid, number: count }).nullable(),
  after: z.object({ versionId: uuid, number: count }).nullable(),
  /** Devices that get another version at their next boot, by what they get then. */
  changed: z.array(z.object({ fromNumber: count.nullable(), toNumber: count.nullable(), devices: deviceTally })),
  /** The version that devices run now and keep. */
  running: z.array(z.object({ versionId: uuid, number: count.nullable(), devices: deviceTally })),
  /** Kernel, initramfs or command line are others after it. */
  changesBoot: z.boolean(),
  /** The holders of the version, in words. */
  holders: z.array(z.string()),
  /** Versions made from it: they no longer need it. */
  childNumbers: z.array(count),
  /** How much each edge frees, or works on. */
  edges: z.array(
    z.object({
      edgeId: uuid,
      edgeName: z.string(),
      siteName: z.string(),
      ownBytes: count,
      sharedBytes: count,
      reclaimableBytes: count,
    }),
  ),
})
export type VersionPreview = z.infer<typeof versionPreview>

/** The boot profile that an edge learned from a version's boots. */
const bootProfileView = z.object({
  /** The class of hardware, or `any`; untrusted text. */
  hardware: z.string(),
  boots: count,
  readAheadBytes: count,
  /** Units of 32 KiB. */
  units: count,
  /** Null: it was carried from another version, and has not learned yet. */
  learnedAt: instant.nullable(),
})
export type BootProfileView = z.infer<typeof bootProfileView>

/** An edge's report about a version in its store. */
export const versionAtEdge = z.object({
  edgeId: uuid,
  edgeName: z.string(),
  siteName: z.string(),
  state: z.enum(edgeVersionStates),
  isLayer: z.boolean(),
  ownBytes: count,
  sharedBytes: count,
  reclaimableBytes: count,
  /** The profile of all boots first; empty: none was learned, or the edge is too old to report it. */
  bootProfiles: z.array(bootProfileView),
  checkedAt: instant.nullable(),
  reportedAt: instant,
})

export const registerVersionInput = z.object({
  vdiskId: uuid,
  diskPath: storePath,
  sizeBytes: z
    .number()
    .int()
    .positive()
    .max(sizeBytesMax)
    .refine((size) => size % 512 === 0, 'A disk size is a multiple of 512 bytes.'),
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
