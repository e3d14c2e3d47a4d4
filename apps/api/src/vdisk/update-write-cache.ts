import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { recordChange } from '../events/record-change.ts'
import type { ChangedObject } from '../rules/changed-object.ts'
import type { updateWriteCacheInput } from './version-schema.ts'

const fieldsSelect = { writeCache: true, writeCacheLimitBytes: true, writeCacheFull: true } as const

/**
 * Where writes of the vDisk's devices go from their next boot on. Throws `not_found`; `conflict` where somebody changed
 * it meanwhile.
 */
export async function updateWriteCache(
  context: ServiceContext,
  { vdiskId, revision, ...settings }: z.output<typeof updateWriteCacheInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId, revision })
  const where = ownRow({ organizationId }, vdiskId)
  const before = await db.vdisk.findUniqueOrThrow({ where, select: fieldsSelect })
  const after = {
    writeCache: settings.class,
    writeCacheLimitBytes: settings.limitBytes === null ? null : BigInt(settings.limitBytes),
    writeCacheFull: settings.full,
  }
  const vdisk = await db.vdisk.update({
    where,
    data: after,
    select: { id: true, name: true, revision: true },
  })
  await recordChange(context, { kind: 'vdisk', id: vdiskId, name: vdisk.name, place, before, after })
  return vdisk
}
