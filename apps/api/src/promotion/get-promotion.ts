import { ownRow, type ServiceContext } from '../context/service-context.ts'
import type { Objects } from '../difference/public.ts'
import { AppError } from '../errors/app-error.ts'
import { readSpread } from '../placement/public.ts'
import { readPromotion, seesEdgesOf } from '../vdisk/public.ts'
import type { PromotionView } from './schema.ts'

const edgesShownMax = 100

/** Says what a vDisk's promotion or revert waits for. Throws `not_found`. */
export async function getPromotion(
  { db, clock, actor, objects }: ServiceContext & { objects: Objects },
  vdiskId: string,
): Promise<{ promotion: PromotionView | null }> {
  const { organizationId } = actor
  const vdisk = await db.vdisk.findUnique({ where: ownRow(actor, vdiskId), select: { farmId: true } })
  if (!vdisk) throw new AppError('not_found')
  const key = { organizationId, vdiskId }
  const row = await readPromotion(db, key)
  if (!row) return { promotion: null }
  const { versionId } = row
  const hasObjects = objects.areOpen
  const { heldCount, lacking } = await readSpread(db, { ...key, versionId, now: clock(), hasObjects })
  const seesEdge = seesEdgesOf(actor, vdisk.farmId)
  const edges = lacking.filter(({ siteId }) => seesEdge(siteId)).slice(0, edgesShownMax)
  return {
    promotion: {
      versionId,
      number: row.version.number,
      step: row.step === 'revert' ? 'revert' : 'promote',
      since: row.askedAt.toISOString(),
      until: row.waitsUntil.toISOString(),
      askedBy: row.askedByName,
      givenUp: row.givenUpAt && { at: row.givenUpAt.toISOString(), reason: row.givenUpReason ?? '' },
      heldCount,
      lackingCount: lacking.length,
      lacking: edges.map(({ siteId: _siteId, retryAt, message, ...edge }) =>
        Object.assign(edge, { retryAt: retryAt?.toISOString() ?? null, untrusted: { message } }),
      ),
    },
  }
}
