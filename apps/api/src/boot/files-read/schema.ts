import { readFileKinds, traceStates } from '@bootfarm/proto/uplink'
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

const guestReads = {
  name: z.string().describe('Of a program or unit; from the device, printable ASCII, at most 64 characters.'),
  reads: count.describe('READs of it.'),
  bytes,
  coldReads,
  coldBytes: count.describe('Of cold READs.'),
  aheadBytes: count.describe('Of READs that the device sent before its system asked.'),
  storageUs,
  firstUs: atUs,
  gainUs: count.describe(
    'µs in which READs of it alone waited for a disk of the edge: what the boot gains if they do not.',
  ),
}
const unitStart = z.object({
  name: guestReads.name,
  startUs: count.describe('µs since the kernel’s start.'),
  durationUs: count.describe('Until it was active, in µs.'),
})

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
    trace: z
      .object({
        state: z
          .enum(traceStates)
          .describe('`no_tracing`: the kernel has no tracefs, or keeps it locked; `no_event`: it has no such event.'),
        lost: count.describe('Requests that the device’s kernel dropped.'),
        namedBytes: count.describe('Of programs with a name.'),
        unitBytes: count.describe('Of programs with a unit.'),
      })
      .nullable()
      .describe('Null where the device has not told which programs read its disk.'),
    programs: z
      .array(z.object({ unit: guestReads.name, ...guestReads }))
      .describe('Programs that read the disk; those first whose cold READs cost the boot most.'),
    units: z.array(z.object(guestReads)).describe('The same by unit of the init system.'),
    slowestUnits: z.array(unitStart).describe('Units of systemd that took longest to start.'),
    unitChain: z.array(unitStart).describe('The last unit of the boot, and before each the one that it waited for.'),
  })
  .meta({ id: 'BootFilesRead' })
  .nullable()
export type BootFilesRead = z.infer<typeof bootFilesRead>
