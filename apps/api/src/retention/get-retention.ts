import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { readAtEdges, seesEdgesOf } from '../vdisk/public.ts'
import { type Judged, judgeVersions } from './judge-versions.ts'
import type { RetentionPreview, RetentionView, retentionPreviewInput } from './schema.ts'

/** Throws `not_found`. */
export async function getRetention({ db, actor }: ServiceContext, vdiskId: string): Promise<RetentionView> {
  const vdisk = await db.vdisk.findUnique({
    where: ownRow(actor, vdiskId),
    select: { revision: true, keptReleases: true, retentionTrashDays: true },
  })
  if (!vdisk) throw new AppError('not_found')
  const { revision, keptReleases, retentionTrashDays: trashDays } = vdisk
  return { revision, keptReleases, trashDays }
}

/** Says what retention would delete, and why each other version stays, without a change. Throws `not_found`. */
export async function previewRetention(
  context: ServiceContext,
  { vdiskId, keptReleases }: z.output<typeof retentionPreviewInput>,
): Promise<RetentionPreview> {
  const { db, actor } = context
  const vdisk = await db.vdisk.findUnique({ where: ownRow(actor, vdiskId), select: { farmId: true } })
  const judged = vdisk && (await judgeVersions(context, { vdiskId, keptReleases, viewer: actor }))
  if (!judged) throw new AppError('not_found')
  return {
    versions: judged.verdicts.map(({ versionId, number, releasedAt, reason }) => ({
      versionId,
      number,
      releasedAt: releasedAt?.toISOString() ?? null,
      goes: reason === null,
      reasons: reason ? [reason] : [],
    })),
    waitingCount: judged.waitingCount,
    edges: await edgesOf(context, { judged, farmId: vdisk.farmId }),
  }
}

/** Those that the caller may see, by name. */
async function edgesOf(
  { db, actor }: ServiceContext,
  { judged, farmId }: { judged: Judged; farmId: string },
): Promise<RetentionPreview['edges']> {
  const versionIds = judged.verdicts.flatMap(({ versionId, reason }) => (reason === null ? [versionId] : []))
  const seesEdge = seesEdgesOf(actor, farmId)
  const edges = new Map<string, RetentionPreview['edges'][number]>()
  const atEdges = await readAtEdges(db, { organizationId: actor.organizationId, versionIds })
  for (const { edgeId, edgeName, siteName, siteId, state, reclaimableBytes } of [...atEdges.values()].flat()) {
    if (state === 'missing' || !seesEdge(siteId)) continue
    const known = edges.get(edgeId)
    edges.set(edgeId, {
      edgeId,
      edgeName,
      siteName,
      versionCount: (known?.versionCount ?? 0) + 1,
      reclaimableBytes: (known?.reclaimableBytes ?? 0) + Number(reclaimableBytes),
    })
  }
  return [...edges.values()].sort((a, b) => (a.edgeName < b.edgeName ? -1 : 1))
}
