import { readFileKinds } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { count, uuid } from '../../rules/scalars.ts'

export const bootFilesReadInput = z.object({ bootId: uuid })

const atUs = count.describe('µs since the start of the boot.')
const storageUs = count.describe('From a READ to its bytes in the hand of the edge, in µs.')
const bytes = count.describe('Bytes that were read.')
const coldReads = count.describe('READs that waited for a disk of the edge.')
const name = z
  .string()
  .describe('A path, or words for an area of the disk; from the image, printable ASCII, shortened at its beginning.')

/** Null where its edge has sent none: the boot is in progress, or was before edges listed what boots read. */
export const bootFilesRead = z
  .object({
    receivedAt: z.iso.datetime(),
    versionId: uuid,
    reads: count.describe('READs of the boot, each once.'),
    bytes,
    coldReads,
    coldBytes: count.describe('Of cold READs.'),
    aheadReads: count.describe('READs that the device sent before its system asked.'),
    aheadBytes: count.describe('Of READs ahead.'),
    storageUs,
    namedBytes: count.describe('Of files, directories and known areas of the disk.'),
    droppedReads: count.describe('Beyond what an edge lists of a boot.'),
    fileCount: count.describe('Files and areas that were read.'),
    diskBytes: count.describe('The size of the disk.'),
    cellBytes: count.describe('The size of a cell of the disk.'),
    cells: z
      .array(z.object({ index: count.describe('In units of `cellBytes`.'), bytes, firstUs: atUs }))
      .describe('Cells of the disk that were read.'),
    files: z
      .array(
        z.object({
          name,
          kind: z
            .enum(readFileKinds)
            .describe('`area`: a table or journal of a file system; `free`: in no file; `unmapped`: not known.'),
          reads: count.describe('READs of a part of it.'),
          bytes,
          coldReads,
          storageUs,
          firstUs: atUs,
        }),
      )
      .describe('Those that took the most time, then further ones with the most bytes.'),
    slowest: z
      .array(
        z.object({
          atUs,
          offset: count.describe('Byte of the disk.'),
          bytes,
          storageUs,
          isCold: z.boolean().describe('It waited for a disk of the edge.'),
          isAhead: z.boolean().describe('The device sent it before its system asked.'),
          name,
        }),
      )
      .describe('The slowest READs.'),
  })
  .meta({ id: 'BootFilesRead' })
  .nullable()
export type BootFilesRead = z.infer<typeof bootFilesRead>
