import { inOrganization, type TenantDb } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import type { Change } from '../events/event-bus.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'
import { lackingEdges } from '../placement/public.ts'
import {
  apply,
  type PromotionRow,
  promotionsName,
  readPromotion,
  readVersions,
  vdiskChange,
  withVdiskHeld,
  writeVersions,
} from '../vdisk/public.ts'

/** Takes promotions and reverts whose version is at all edges that are to hold it; gives up those that cannot be. */
export async function advancePromotions({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_promotions() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      const waiting = await inOrganization(db, organizationId, (tenant) =>
        tenant.waitingPromotion.findMany({
          where: { organizationId, givenUpAt: null },
          orderBy: { vdiskId: 'asc' },
          select: { vdiskId: true },
        }),
      )
      for (const { vdiskId } of waiting)
        await inOrganization(db, organizationId, (tenant) => advance(tenant, { organizationId, vdiskId }, clock()))
    },
    rows.map(({ id }) => id),
  )
}

interface VdiskKey {
  organizationId: string
  vdiskId: string
}

/** People, and other API processes, may have been first: the vDisk is held, and everything read again. */
function advance(db: TenantDb, key: VdiskKey, now: Date): Promise<void> {
  const { organizationId, vdiskId } = key
  return withVdiskHeld({ db, clock: () => now, actor: { organizationId } }, { vdiskId }, async () => {
    const row = await readPromotion(db, key)
    const versions = await readVersions(db, key)
    // One in the trash waits there.
    if (!row || row.givenUpAt || !versions) return
    const { versionId } = row
    const step = { kind: row.step === 'revert' ? ('revert' as const) : ('promote' as const), versionId }
    const { next, refusal } = apply(versions, step, now)
    if (refusal) return giveUp(db, key, { row, now, reason: refusal.text })
    const lacking = await lackingEdges(db, { ...key, versionId, now })
    if (lacking.length > 0) {
      const edges = lacking.length === 1 ? 'An edge' : `${lacking.length} edges`
      const reason = `${edges} did not get version ${row.version.number} in time.`
      return now < row.waitsUntil ? undefined : giveUp(db, key, { row, now, reason })
    }
    await writeVersions(db, key, { before: versions, next })
    await db.waitingPromotion.deleteMany({ where: key })
    const before = versions.versions.find(({ id }) => id === versions.defaultVersionId)?.number ?? null
    await tell(db, key, now, {
      action: `version.${step.kind}`,
      before: { default: before, promotion: { version: row.version.number, step: row.step } },
      after: { default: row.version.number, promotion: null, askedBy: row.askedByName },
    })
  })
}

async function giveUp(
  db: TenantDb,
  key: VdiskKey,
  { row, now, reason }: { row: PromotionRow; now: Date; reason: string },
): Promise<void> {
  await db.waitingPromotion.updateMany({ where: key, data: { givenUpAt: now, givenUpReason: reason } })
  await tell(db, key, now, {
    action: 'version.giveUpPromotion',
    before: { promotion: { version: row.version.number, step: row.step } },
    after: { promotion: null, reason },
  })
}

async function tell(
  db: TenantDb,
  key: VdiskKey,
  now: Date,
  change: Pick<Change, 'before' | 'after'> & { action: string },
): Promise<void> {
  const doing = Object.assign(await vdiskChange(db, key), change)
  await recordDoings({ db, now }, jobDoer(key.organizationId, promotionsName), [doing])
}
