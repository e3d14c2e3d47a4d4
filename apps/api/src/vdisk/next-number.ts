import { type DbOrTransaction, ownRow, withTrash } from '../context/service-context.ts'

/** A number that no version of the vDisk has had, those that are gone included. The caller holds the vDisk's row. */
export async function nextVersionNumber(
  db: DbOrTransaction,
  { organizationId, vdiskId }: { organizationId: string; vdiskId: string },
): Promise<number> {
  const last = await withTrash(db, () =>
    db.vdiskVersion.aggregate({ where: { organizationId, vdiskId }, _max: { number: true } }),
  )
  const where = ownRow({ organizationId }, vdiskId)
  const { lastVersionNumber } = await db.vdisk.findUniqueOrThrow({
    where,
    select: { lastVersionNumber: true },
  })
  const number = Math.max(lastVersionNumber, last._max.number ?? 0) + 1
  await db.vdisk.update({ where, data: { lastVersionNumber: number }, select: { id: true } })
  return number
}
