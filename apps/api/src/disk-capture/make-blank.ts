import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { askStore } from '../store/public.ts'
import { changeVdiskVersions, importVersion } from '../vdisk/public.ts'
import type { CaptureRow } from './capture-row.ts'

/** The empty disks into which disks are captured: the version that a device writes is above one. */

/**
 * Of a disk whose size is not known: the device refuses to copy its disk onto another size, and names its own. If it
 * has this size, it is captured.
 */
const probeSizeBytes = 1024 ** 2
const captureWord = 'bootfarm.capture='

/** Orders an empty disk from the capture's edge. Throws like `importVersion`. */
export async function makeBlank(
  context: ServiceContext,
  row: CaptureRow,
): Promise<{ jobId: string; blankIds: string[] }> {
  const { db, actor } = context
  const { vdiskId, edgeId, bootVersionId, disk, sizeBytes, blankIds } = row
  const boots = await db.vdiskVersion.findUnique({
    where: ownRow(actor, bootVersionId),
    select: { commandLine: true },
  })
  if (!boots) throw new AppError('conflict', { public: 'The version with the boot files was deleted.' })
  const words = boots.commandLine.split(' ').filter((word) => word !== '' && !word.startsWith(captureWord))
  const made = await importVersion(context, {
    vdiskId,
    edgeId,
    bootVersionId,
    emptySizeBytes: sizeBytes === null ? probeSizeBytes : Number(sizeBytes),
    commandLine: [...words, captureWord + disk].join(' '),
    sourcePath: null,
    uploadId: null,
    url: null,
    sha256: null,
    kernelPath: null,
    initrdPath: null,
    bootFiles: 'image',
    parentVersionId: null,
    modules: [],
    note: 'An empty disk, into which a disk is captured. It is deleted in the end.',
    labels: [],
    state: 'test',
  })
  return { jobId: made.jobIds[0] ?? '', blankIds: [...blankIds, made.id] }
}

/** Deletes the empty disks of a capture, here and at its edge: the version above them is sealed, or gone. */
export function removeBlanks(context: ServiceContext, { vdiskId, edgeId, blankIds }: CaptureRow): Promise<void> {
  const { db, actor } = context
  const { organizationId } = actor
  return changeVdiskVersions(context, { vdiskId }, async () => {
    const blanks = await db.vdiskVersion.findMany({
      where: { organizationId, vdiskId, id: { in: blankIds }, isBlank: true },
      select: { id: true },
    })
    for (const { id: versionId } of blanks) {
      await db.vdiskVersion.delete({ where: ownRow(actor, versionId), select: { id: true } })
      try {
        await askStore(context, { edgeId, kind: 'delete', vdiskId, versionId })
      } catch (error) {
        // It takes no space there, and the edge lists it among its images.
        if (!(error instanceof AppError)) throw error
      }
    }
  })
}
