import { z } from 'zod'
import { count, uuid } from './uplink-values.ts'

/** What a boot read, by file; UPLINK.md describes when it is sent. */

/** The size limit of the whole in bytes. */
export const filesReadSizeMax = 64 * 1024
export const filesReadShownMax = 100
export const slowestReadsMax = 32
export const diskCellsMax = 256

/** The path of a file, or words for an area of the disk: chosen by an image, never trusted. */
const fileName = z
  .string()
  .max(200)
  .regex(/^[\x20-\x7e]*$/)

/** `area`: a table or journal of a file system; `free`: in no file; `unmapped`: nobody knows. */
export const readFileKinds = ['file', 'directory', 'link', 'area', 'free', 'unmapped'] as const

/** `no_tracing`: the device's kernel has no tracefs, or keeps it locked; `no_event`: it does not tell of requests. */
export const traceStates = ['complete', 'no_tracing', 'no_event'] as const
export const programsShownMax = 24
export const unitsShownMax = 24

/** The name of a program or of a unit of the init system: the device says it, so it is never trusted. */
const guestName = z
  .string()
  .max(64)
  .regex(/^[\x20-\x7e]*$/)

/** What a program or a unit read. */
const guestReads = {
  name: guestName,
  reads: count,
  bytes: count,
  coldReads: count,
  coldBytes: count,
  /** Of READs that the device sent before its system asked. */
  aheadBytes: count,
  storageUs: count,
  firstUs: count,
  /** In which READs of it alone waited for a disk of the edge: what the boot gains if they do not. */
  gainUs: count,
}

/** The start of a unit of systemd, in µs since the kernel's start. */
const unitStart = z.object({ name: guestName, startUs: count, durationUs: count })

export const filesRead = z.object({
  versionId: uuid,
  reads: count,
  bytes: count,
  coldReads: count,
  coldBytes: count,
  aheadReads: count,
  aheadBytes: count,
  /** From each READ to its bytes in hand. */
  storageUs: count,
  /** Bytes of files, directories, links and areas. */
  namedBytes: count,
  /** READs beyond what the edge lists of a boot. */
  droppedReads: count,
  fileCount: count,
  diskBytes: count.min(1),
  cellBytes: count.min(1),
  /** Cells of the disk that were read: index, bytes, and µs of the first READ since the boot's start. */
  cells: z.array(z.tuple([count.max(diskCellsMax - 1), count, count])).max(diskCellsMax),
  /** Those that took the most time, then further ones with the most bytes. */
  files: z
    .array(
      z.object({
        name: fileName,
        kind: z.enum(readFileKinds),
        reads: count,
        bytes: count,
        coldReads: count,
        storageUs: count,
        firstUs: count,
      }),
    )
    .max(filesReadShownMax),
  /** The slowest first. */
  slowest: z
    .array(
      z.object({
        atUs: count,
        offset: count,
        bytes: count,
        storageUs: count,
        isCold: z.boolean(),
        isAhead: z.boolean(),
        name: fileName,
      }),
    )
    .max(slowestReadsMax),
  /** Absent where the device has not told which programs read: it runs another release, or has not begun to trace. */
  trace: z
    .object({
      state: z.enum(traceStates),
      /** Requests that its kernel or its program dropped. */
      lost: count,
      /** Bytes of programs with a name, and of those with a unit. */
      namedBytes: count,
      unitBytes: count,
    })
    .optional(),
  /** Those first whose cold READs cost the boot most. */
  programs: z
    .array(z.object({ unit: guestName, ...guestReads }))
    .max(programsShownMax)
    .optional(),
  units: z.array(z.object(guestReads)).max(unitsShownMax).optional(),
  /** Absent without systemd. */
  slowestUnits: z.array(unitStart).max(unitsShownMax).optional(),
  /** The last unit of the boot, and before each the one that it waited for. */
  unitChain: z.array(unitStart).max(unitsShownMax).optional(),
})
export type FilesRead = z.infer<typeof filesRead>
