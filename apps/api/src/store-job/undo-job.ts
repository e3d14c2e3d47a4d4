import type { storeJobKinds } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../context/service-context.ts'
import { activeStates } from '../store/public.ts'

export interface JobRow {
  id: string
  edgeId: string
  kind: (typeof storeJobKinds)[number]
  vdiskId: string | null
  versionId: string | null
  intoVersionId: string | null
  deviceId: string | null
}

/**
 * What a job that came to nothing leaves behind is taken away: a version that was to be sealed is written on, and one
 * that nobody makes any more is gone. The caller holds the vDisk, and has noted the job's end.
 */
export async function undoJob(
  db: DbOrTransaction,
  { organizationId, job }: { organizationId: string; job: JobRow },
): Promise<void> {
  if (job.kind === 'release_home' && job.deviceId)
    await db.device.updateMany({
      where: { organizationId, id: job.deviceId },
      data: { nextHomeEdgeId: null },
    })
  const id = madeVersionId(job)
  if (id === null) return
  if (job.kind === 'seal') {
    await db.vdiskVersion.updateMany({
      where: { organizationId, id, sealedAt: null },
      data: { sealAskedAt: null },
    })
    return
  }
  const others = await db.storeJob.count({
    where: { organizationId, state: activeStates, OR: [{ versionId: id }, { intoVersionId: id }] },
  })
  if (others === 0) await db.vdiskVersion.deleteMany({ where: { organizationId, id, sealedAt: null } })
}

/** The version that comes of a job; null where none does. */
export function madeVersionId({
  kind,
  versionId,
  intoVersionId,
}: {
  kind: string
  versionId: string | null
  intoVersionId: string | null
}): string | null {
  if (kind === 'merge') return intoVersionId
  return kind === 'seal' || kind === 'import' || kind === 'adopt' ? versionId : null
}
