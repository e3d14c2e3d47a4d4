import type { ServiceContext } from '../context/service-context.ts'
import { recordChange } from '../events/record-change.ts'
import { changedVersionNow, changeVdiskVersions, conflict, readPromotion } from '../vdisk/public.ts'
import type { ChangedVersion } from '../vdisk/version-schema.ts'
import { dropWait, raiseRevision } from './start-waiting.ts'

/**
 * Cancels the promotion or the revert that waits; one that was given up is shown no longer. Throws `not_found`;
 * `conflict` if there is none.
 */
export function cancelPromotion(
  context: ServiceContext,
  seen: { vdiskId: string; revision: number },
): Promise<ChangedVersion> {
  return changeVdiskVersions(context, seen, async ({ vdisk, place }) => {
    const key = { organizationId: context.actor.organizationId, vdiskId: vdisk.id }
    const row = await readPromotion(context.db, key)
    if (!row) throw conflict('No promotion of this vDisk waits.')
    await dropWait(context, vdisk.id)
    await raiseRevision(context, vdisk.id)
    await recordChange(context, {
      kind: 'vdisk',
      id: vdisk.id,
      name: vdisk.name,
      place,
      before: { promotion: { version: row.version.number, step: row.step } },
      after: { promotion: null },
    })
    return changedVersionNow(context, row.versionId)
  })
}
