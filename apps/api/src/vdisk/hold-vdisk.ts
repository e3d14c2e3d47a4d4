import { type DbOrTransaction, lockRow, ownRow, withTrash } from '../context/service-context.ts'
import { emit } from '../events/event-bus.ts'
import type { Clock } from '../rules/clock.ts'
import { readResolved, readVersions, writeVersions } from './version-facts.ts'
import { apply } from './version-steps.ts'
import { dropOvertaken } from './waiting-promotion.ts'

interface PromotionContext {
  db: DbOrTransaction
  clock: Clock
  actor: { organizationId: string }
}
interface VdiskKey {
  organizationId: string
  vdiskId: string
}
type Booted = { id: string; number: number } | null
/** What production devices boot, and what they boot without an override. */
interface Chosen {
  production: Booted
  default: Booted
}

/**
 * Executes a change of a vDisk's versions. If devices of the vDisk boot another version after it, `versionPromoted` is
 * emitted in the same transaction. Changes of one vDisk's versions wait for each other here, so that each compares with
 * the result of the previous one; a release whose instant has come becomes the default before.
 */
export async function withVdiskHeld<T>(
  { db, clock, actor }: PromotionContext,
  of: { vdiskId: string } | { versionId: string },
  change: (found: { settled: boolean }) => Promise<T>,
): Promise<T> {
  const { organizationId } = actor
  const vdiskId = 'vdiskId' in of ? of.vdiskId : await vdiskOf(db, organizationId, of.versionId)
  // The change itself refuses missing objects.
  if (vdiskId === null) return change({ settled: false })
  const key = { organizationId, vdiskId }
  await lockRow(db, 'vdisk', { organizationId, id: vdiskId, strength: 'no key update' })
  const settled = await settleRelease(db, key, clock())
  const before = await chosenVersions(db, key, clock())
  const result = await change({ settled })
  const after = await chosenVersions(db, key, clock())
  await tellPromotion(db, key, { before: before.production, after: after.production, now: clock() })
  await dropOvertaken(db, key, { before: before.default, after: after.default, now: clock() })
  return result
}

/** Time alone has changed what devices boot: that is stored now, and announced once. @returns whether it has */
async function settleRelease(db: DbOrTransaction, key: VdiskKey, now: Date): Promise<boolean> {
  const versions = await readVersions(db, key)
  if (!versions?.pendingVersionId) return false
  const { next } = apply(versions, { kind: 'release' }, now)
  const releasedAt = versions.versions.find(({ id }) => id === next?.defaultVersionId)?.releasedAt
  if (!next || !releasedAt) return false
  const { production: before } = await chosenVersions(db, key, new Date(releasedAt.getTime() - 1))
  await writeVersions(db, key, { before: versions, next })
  const { production: after } = await chosenVersions(db, key, now)
  await tellPromotion(db, key, { before, after, now })
  return true
}

async function tellPromotion(
  db: DbOrTransaction,
  key: VdiskKey,
  { before, after, now }: { before: Booted; after: Booted; now: Date },
): Promise<void> {
  const { organizationId, vdiskId } = key
  if (after?.id === before?.id) return
  if (!after) return
  const vdisk = await db.vdisk.findUniqueOrThrow({
    where: ownRow({ organizationId }, vdiskId),
    select: { name: true, farmId: true },
  })
  await emit('versionPromoted', {
    db,
    now,
    organizationId,
    farmId: vdisk.farmId,
    vdiskId,
    vdiskName: vdisk.name,
    version: after,
    previous: before,
  })
}

/** A version may be in the trash, about to be restored. */
async function vdiskOf(db: DbOrTransaction, organizationId: string, versionId: string): Promise<string | null> {
  const version = await withTrash(db, () =>
    db.vdiskVersion.findUnique({ where: ownRow({ organizationId }, versionId), select: { vdiskId: true } }),
  )
  return version?.vdiskId ?? null
}

/** According to the desired state. */
async function chosenVersions(db: DbOrTransaction, { organizationId, vdiskId }: VdiskKey, now: Date): Promise<Chosen> {
  const resolved = (await readResolved(db, { organizationId, vdiskIds: [vdiskId] }, now)).get(vdiskId)
  const bootedOf = (version: Booted = null): Booted => version && { id: version.id, number: version.number }
  return { production: bootedOf(resolved?.production), default: bootedOf(resolved?.default) }
}
