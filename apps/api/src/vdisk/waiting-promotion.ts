import type { Prisma } from '@bootfarm/db'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'

export const promotionsName = 'promotions that wait'

interface VdiskKey {
  organizationId: string
  vdiskId: string
}

const select = {
  versionId: true,
  step: true,
  askedAt: true,
  askedByName: true,
  waitsUntil: true,
  givenUpAt: true,
  givenUpReason: true,
  version: { select: { number: true } },
} satisfies Prisma.WaitingPromotionSelect
export type PromotionRow = Prisma.WaitingPromotionGetPayload<{ select: typeof select }>

/** The step that waits, or was given up. Null: none, or its version is in the trash. */
export function readPromotion(
  db: DbOrTransaction,
  { organizationId, vdiskId }: VdiskKey,
): Promise<PromotionRow | null> {
  return db.waitingPromotion.findFirst({ where: { organizationId, vdiskId, version: { vdiskId } }, select })
}

/** The names of a vDisk's changes by jobs. */
export async function vdiskChange(db: DbOrTransaction, { organizationId, vdiskId }: VdiskKey) {
  const { name, farmId } = await db.vdisk.findUniqueOrThrow({
    where: ownRow({ organizationId }, vdiskId),
    select: { name: true, farmId: true },
  })
  return { kind: 'vdisk' as const, id: vdiskId, name, place: { farmId, siteId: null, collectionId: null } }
}

type Default = { id: string } | null

/**
 * Ends a wait that another choice of the default has overtaken: the newest decision holds. A default that was only
 * deleted is no decision.
 */
export async function dropOvertaken(
  db: DbOrTransaction,
  key: VdiskKey,
  { before, after, now }: { before: Default; after: Default; now: Date },
): Promise<void> {
  if (!after || after.id === before?.id) return
  const row = await readPromotion(db, key)
  if (!row) return
  const { organizationId } = key
  if (before && !(await db.vdiskVersion.findUnique({ where: ownRow(key, before.id), select: { id: true } }))) return
  await db.waitingPromotion.deleteMany({ where: key })
  if (row.versionId === after.id || row.givenUpAt) return
  await recordDoings({ db, now }, jobDoer(organizationId, promotionsName), [
    Object.assign(await vdiskChange(db, key), {
      action: 'version.cancelPromotion',
      before: { promotion: { version: row.version.number, step: row.step } },
      after: { promotion: null, reason: 'another version became the default' },
    }),
  ])
}
