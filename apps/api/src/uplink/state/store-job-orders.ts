import { type StoreJobOrder, storeJobsMax } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../../context/service-context.ts'
import { madeVersionId } from '../../store-job/undo-job.ts'

/** Work that the edge's store has yet to do or to finish, oldest first. */
export async function readStoreJobs(
  db: DbOrTransaction,
  { organizationId, edgeId }: { organizationId: string; edgeId: string },
): Promise<StoreJobOrder[]> {
  const jobs = await db.storeJob.findMany({
    where: { organizationId, edgeId, state: { in: ['queued', 'running'] } },
    orderBy: [{ askedAt: 'asc' }, { id: 'asc' }],
    take: storeJobsMax,
    select: {
      id: true,
      kind: true,
      vdiskId: true,
      versionId: true,
      intoVersionId: true,
      sourcePath: true,
      bootFiles: true,
      deviceId: true,
      layerClass: true,
    },
  })
  const madeIds = jobs.flatMap((job) => madeVersionId(job) ?? [])
  const versions = await db.vdiskVersion.findMany({
    where: { organizationId, id: { in: madeIds } },
    select: {
      id: true,
      number: true,
      parentVersionId: true,
      kernelPath: true,
      initrdPath: true,
      commandLine: true,
    },
  })
  const versionOf = new Map(versions.map((version) => [version.id, version]))
  return jobs.map((job) => {
    const made = versionOf.get(madeVersionId(job) ?? '')
    const { id, kind, vdiskId, versionId, intoVersionId, sourcePath, bootFiles, deviceId, layerClass } = job
    return {
      id,
      kind,
      ...(vdiskId ? { vdiskId } : {}),
      ...(versionId ? { versionId } : {}),
      ...(intoVersionId ? { intoVersionId } : {}),
      ...(sourcePath ? { sourcePath } : {}),
      ...(bootFiles ? { bootFiles } : {}),
      ...(made ? { number: made.number } : {}),
      // Of any other, the one that is taken from the image counts.
      ...(made && kind === 'import' && made.commandLine !== '' ? { commandLine: made.commandLine } : {}),
      ...(deviceId ? { deviceId } : {}),
      // Only `dropWrites` sets it.
      ...(layerClass ? { layerClass: layerClass as StoreJobOrder['layerClass'] } : {}),
      ...(made?.parentVersionId ? { parentVersionId: made.parentVersionId } : {}),
      ...(made?.kernelPath ? { kernelPath: made.kernelPath } : {}),
      ...(made?.initrdPath ? { initrdPath: made.initrdPath } : {}),
    }
  })
}
