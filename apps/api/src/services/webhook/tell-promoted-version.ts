import { randomUUID } from 'node:crypto'
import type { Clock } from '../../domain/clock.ts'
import { notify } from '../notifications.ts'
import type { DbOrTransaction, ServiceContext } from '../service-context.ts'
import { withTrash } from '../trash/with-trash.ts'
import { readResolved } from '../vdisk/version-facts.ts'
import { publishEvents } from './publish-event.ts'

/**
 * Does a change of a vDisk's versions. Where devices of the vDisk boot another version after it than before, edges of its farm are
 * woken and version.promoted is told, in the same transaction. Changes of one vDisk's versions wait for each other here, so that
 * each compares with what the one before it left.
 */
export async function withPromotionTold<T>(
  context: Pick<ServiceContext, 'db' | 'clock' | 'actor'>,
  of: { vdiskId: string } | { versionId: string },
  change: () => Promise<T>,
): Promise<T> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const vdiskId = 'vdiskId' in of ? of.vdiskId : await vdiskOf(db, organizationId, of.versionId)
  // What is not there is refused by the change itself.
  if (vdiskId === null) return change()
  const key = { organizationId, vdiskId }
  await db.$queryRaw`select id from vdisk where organization_id = ${organizationId}::uuid and id = ${vdiskId}::uuid
    for no key update`
  const before = await bootedVersion(db, key, clock)
  const result = await change()
  const after = await bootedVersion(db, key, clock)
  if (after?.id === before?.id) return result
  const vdisk = await db.vdisk.findUniqueOrThrow({
    where: { organizationId_id: { organizationId, id: vdiskId } },
    select: { name: true, farmId: true, farm: { select: { sites: { select: { id: true } } } } },
  })
  // Wherever the farm has sites: the vDisk may be in a menu.
  for (const { id: siteId } of vdisk.farm.sites) await notify(db, { state: { siteId } })
  if (!after) return result
  await publishEvents(db, clock(), [
    {
      organizationId,
      type: 'version.promoted',
      // The same version may be promoted again, after a newer one came and went.
      subject: `${after.id} ${randomUUID()}`,
      data: {
        ...{ farmId: vdisk.farmId, vdiskId, vdiskName: vdisk.name },
        ...{ versionId: after.id, versionNumber: after.number },
        ...{ previousVersionId: before?.id ?? null, previousVersionNumber: before?.number ?? null },
      },
    },
  ])
  return result
}

/** A version may lie in the trash, from where it is about to be restored. */
async function vdiskOf(
  db: DbOrTransaction,
  organizationId: string,
  versionId: string,
): Promise<string | null> {
  const version = await withTrash(db, () =>
    db.vdiskVersion.findUnique({
      where: { organizationId_id: { organizationId, id: versionId } },
      select: { vdiskId: true },
    }),
  )
  return version?.vdiskId ?? null
}

/** What production devices boot, as the desired state says it. */
async function bootedVersion(
  db: DbOrTransaction,
  { organizationId, vdiskId }: { organizationId: string; vdiskId: string },
  clock: Clock,
): Promise<{ id: string; number: number } | null> {
  const resolved = await readResolved(db, { organizationId, vdiskIds: [vdiskId] }, clock())
  return resolved.get(vdiskId)?.production ?? null
}
