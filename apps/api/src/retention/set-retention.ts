import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { recordChange, recordNothing } from '../events/record-change.ts'
import type { RetentionView, retentionSetInput } from './schema.ts'

/**
 * Chooses how many released versions of a vDisk stay. Others are deleted by the next run, within minutes. Throws
 * `not_found`; `conflict` if somebody else has changed the vDisk meanwhile.
 */
export async function setRetention(
  context: ServiceContext,
  { vdiskId, revision, keptReleases, trashDays }: z.output<typeof retentionSetInput>,
): Promise<RetentionView> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId, revision })
  const where = ownRow(actor, vdiskId)
  const select = { name: true, revision: true, keptReleases: true, retentionTrashDays: true } as const
  const before = await db.vdisk.findUniqueOrThrow({ where, select })
  const after = await db.vdisk.update({ where, data: { keptReleases, retentionTrashDays: trashDays }, select })
  if (isDeepStrictEqual(before, after)) recordNothing(context)
  else
    await recordChange(context, {
      kind: 'vdisk',
      id: vdiskId,
      name: before.name,
      place,
      before: { keptReleases: before.keptReleases, trashDays: before.retentionTrashDays },
      after: { keptReleases, trashDays },
    })
  return { revision: after.revision, keptReleases, trashDays }
}
