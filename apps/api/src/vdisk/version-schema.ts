import {
  edgeVersionStates,
  importModulesMax,
  importUrlSizeMax,
  writeCacheClasses,
  writeCacheFullChoices,
} from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { objectName, objectNote, seenRevision, tags } from '../rules/object-fields.ts'
import { count, instant, sha256Text, uuid } from '../rules/scalars.ts'

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

export const diskSize = z
  .number()
  .int()
  .positive()
  .max(sizeBytesMax)
  .refine((size) => size % 512 === 0, 'A disk size is a multiple of 512 bytes.')

/** The edge reads it more strictly, and decides about addresses when it has resolved the name. */
const imageUrl = z
  .string()
  .trim()
  .max(importUrlSizeMax, `A URL can have at most ${importUrlSizeMax} characters.`)
  .regex(/^[\x21-\x7e]*$/, 'A URL has no spaces, and no characters besides ASCII: encode them with %.')
  .regex(/^https?:\/\//i, 'Enter a URL that begins with http:// or https://.')
  .refine(
    (text) => !/^[a-z]+:\/\/[^/?#]*@/i.test(text),
    'A URL cannot have a user name and a password: they would be kept and shown.',
  )

/** A change of what a vDisk's devices boot is refused if the vDisk has another revision by now. */
export const ofVersion = { versionId: uuid, vdiskRevision: seenRevision }
export const ofVdisk = { vdiskId: uuid, revision: seenRevision }

export const startMaintenanceInput = z.object({
  /** The content with which the new version starts. */
  ...ofVersion,
  deviceId: uuid.describe('The one that writes it: a maintenance device that boots this vDisk.'),
  note: objectNote.default(''),
})
export const sealInput = z.object({
  versionId: uuid,
  revision: seenRevision,
  bootFiles: z
    .enum(['image', 'parent', 'none'])
    .default('image')
    .describe(
      '`image`: kernel, initramfs and command line are taken from the disk; `parent`: those of the version below; `none`: it has none.',
    ),
})
export const discardMaintenanceInput = z.object({ versionId: uuid, revision: seenRevision })
export const cancelReleaseInput = z.object(ofVdisk)
export const overrideInput = z.object(ofVersion)
export const clearOverrideInput = z.object(ofVdisk)
export const mergeInput = z.object({
  ...ofVersion,
  into: z
    .enum(['base', 'update'])
    .describe('`base`: it depends on no other; `update`: it follows the base that the version derives from.'),
  note: objectNote.default(''),
  labels: tags.default([]),
})
export const importInput = z.object({
  vdiskId: uuid,
  edgeId: uuid,
  sourcePath: storePath
    .nullable()
    .default(null)
    .describe('An image in the store of the edge, e.g. `imports/linux.raw`. Null: an upload or a URL.'),
  uploadId: uuid
    .nullable()
    .default(null)
    .describe('A complete upload of the vDisk, which the edge fetches; it is deleted when it is imported.')
    .meta({ examples: [null] }),
  url: imageUrl
    .nullable()
    .default(null)
    .describe('An image that the edge fetches from an HTTP server; the edge’s --import-from says from which addresses.')
    .meta({ examples: [null] }),
  sha256: sha256Text
    .nullable()
    .default(null)
    .describe('Of what is at the URL, in hexadecimal digits: other bytes are refused.')
    .meta({ examples: [null] }),
  emptySizeBytes: diskSize
    .nullable()
    .default(null)
    .describe('In place of an image: a disk of zeros of this size, into which the disk of a machine is captured.')
    .meta({ examples: [null] }),
  bootVersionId: uuid
    .nullable()
    .default(null)
    .describe(
      'A version of the farm that the edge holds: the new one boots with its kernel and initramfs, and with its command line unless one is given.',
    )
    .meta({ examples: [null] }),
  kernelPath: storePath.nullable().default(null).describe('Null, and an empty command line: taken from the image.'),
  initrdPath: storePath.nullable().default(null),
  commandLine: commandLineText,
  bootFiles: z
    .enum(['image', 'parent', 'none'])
    .default('image')
    .describe('`parent`: the same as the parent version; `none`: a disk with a boot loader.'),
  parentVersionId: uuid
    .nullable()
    .default(null)
    .describe('A version of the vDisk that the edge holds: what is equal is not stored again. Null: a new base.'),
  modules: z
    .array(z.string().regex(/^[A-Za-z0-9_-]{1,56}$/, 'A driver has the name of a kernel module, such as r8169.'))
    .max(importModulesMax, `An import can add at most ${importModulesMax} drivers.`)
    .default([])
    .describe('Drivers that are added to the initramfs, where one is made from the image.'),
  note: objectNote.default(''),
  labels: tags.default([]),
  state: z.enum(['test', 'released']).default('test'),
})
export const adoptInput = z
  .object({
    edgeId: uuid,
    versionId: uuid.describe("Id of the image's version, here and at its edge."),
    vdiskId: uuid
      .nullable()
      .default(null)
      .describe("The vDisk of the version; null: a new vDisk of the edge's farm, with this name.")
      .meta({ examples: ['0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'] }),
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
  limitBytes: z
    .number()
    .int()
    .min(writeCacheLimitBytesMin)
    .max(sizeBytesMax)
    .nullable()
    .describe('Per device; null: no limit.'),
  full: z.enum(writeCacheFullChoices),
})

export const changedVersion = z
  .object({
    id: uuid,
    name: z.string(),
    number: count,
    revision: seenRevision,
    vdiskRevision: seenRevision.describe("The revision that a further change of the vDisk's versions needs."),
  })
  .meta({ id: 'ChangedVersion' })
export type ChangedVersion = z.infer<typeof changedVersion>
export const discarded = z.object({ name: z.string() }).meta({ id: 'DiscardedVersion' })
/** With the jobs that were ordered from the edges' stores. */
export const versionWithJobs = changedVersion.extend({ jobIds: z.array(uuid) }).meta({ id: 'VersionWithJobs' })
export type VersionWithJobs = z.infer<typeof versionWithJobs>

const versionActions = ['promote', 'revert', 'override', 'merge', 'delete'] as const
export const clearBootProfileInput = z.object({ versionId: uuid })
export const previewInput = z.object({ versionId: uuid, action: z.enum(versionActions) })
const deviceTally = z.object({
  count,
  names: z.array(z.string()).describe('The first of them, by name.'),
})
export const versionPreview = z
  .object({
    action: z.enum(versionActions),
    refusals: z.array(z.string()).describe('Why it would be refused; empty: it would not.'),
    before: z
      .object({ versionId: uuid, number: count })
      .nullable()
      .describe('The version that production devices boot before and after it; null: none.'),
    after: z.object({ versionId: uuid, number: count }).nullable(),
    changed: z
      .array(z.object({ fromNumber: count.nullable(), toNumber: count.nullable(), devices: deviceTally }))
      .describe('Devices that get another version at their next boot, by what they get then.'),
    running: z
      .array(z.object({ versionId: uuid, number: count.nullable(), devices: deviceTally }))
      .describe('The version that devices run now and keep.'),
    changesBoot: z.boolean().describe('Kernel, initramfs or command line are others after it.'),
    holders: z.array(z.string()).describe('The holders of the version, in words.'),
    childNumbers: z.array(count).describe('Versions made from it: they no longer need it.'),
    edges: z
      .array(
        z.object({
          edgeId: uuid,
          edgeName: z.string(),
          siteName: z.string(),
          ownBytes: count,
          sharedBytes: count,
          reclaimableBytes: count,
        }),
      )
      .describe('How much each edge frees, or works on.'),
    cancelsPromotionOf: count
      .nullable()
      .describe('Number of another version whose promotion or revert waits, and is cancelled by the step.'),
    lacking: z
      .array(
        z.object({
          edgeId: uuid,
          edgeName: z.string(),
          siteName: z.string(),
          state: z.enum(['damaged', 'fetching', 'lacks']).describe('Where the edge’s copy is.'),
          progressBytes: count,
          totalBytes: count.describe('0: not known yet.'),
        }),
      )
      .describe(
        'Edges that are to hold the version and do not: devices cannot boot it there. For steps that release it.',
      ),
  })
  .meta({ id: 'VersionPreview' })
export type VersionPreview = z.infer<typeof versionPreview>

/** The boot profile that an edge learned from a version's boots. */
const bootProfileView = z.object({
  hardware: z.string().describe('The class of hardware, or `any`; untrusted text.'),
  boots: count,
  readAheadBytes: count,
  units: count.describe('Units of 32 KiB.'),
  learnedAt: instant.nullable().describe('Null: it was carried from another version, and has not learned yet.'),
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
  bootProfiles: z
    .array(bootProfileView)
    .describe('The profile of all boots first; empty: none was learned, or the edge is too old to report it.'),
  checkedAt: instant.nullable(),
  reportedAt: instant,
})

export const registerVersionInput = z.object({
  vdiskId: uuid,
  diskPath: storePath,
  sizeBytes: diskSize,
  kernelPath: storePath.nullable().default(null),
  initrdPath: storePath.nullable().default(null),
  commandLine: commandLineText,
  note: objectNote.default(''),
  labels: tags.default([]),
  state: z
    .enum(['test', 'released'])
    .default('released')
    .describe(
      '`test`: for devices that try it out, until it is promoted; `released`: its devices boot it from now on.',
    ),
})
export const updateVersionInput = z.object({
  versionId: uuid,
  revision: seenRevision,
  note: objectNote.optional(),
  labels: tags.optional(),
  isProtected: z.boolean().optional().describe('Whether it cannot be deleted, neither by people nor by retention.'),
})
export const removeVersionInput = z.object({ versionId: uuid, revision: seenRevision.optional() })
