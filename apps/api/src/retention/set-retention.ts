import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { recordDifference } from '../events/record-change.ts'
import { getRetention } from './get-retention.ts'
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
  const select = { name: true, keptReleases: true, retentionTrashDays: true } as const
  const before = await db.vdisk.findUniqueOrThrow({ where, select })
  const data = { keptReleases, retentionTrashDays: trashDays }
  const after = await db.vdisk.update({ where, data, select })
  const change = { before: settingsOf(before), after: settingsOf(after) }
  await recordDifference(context, Object.assign({ kind: 'vdisk', id: vdiskId, name: before.name, place }, change))
  return getRetention(context, vdiskId)
}

/** As the API names them. */
function settingsOf(row: { keptReleases: number | null; retentionTrashDays: number }) {
  return { keptReleases: row.keptReleases, trashDays: row.retentionTrashDays }
}
