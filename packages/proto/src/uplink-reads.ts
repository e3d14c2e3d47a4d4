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
})
export type FilesRead = z.infer<typeof filesRead>
