import type { BootDetail } from '../../domain/boot-view.ts'
import { AppError } from '../../errors/app-error.ts'
import type { ServiceContext } from '../service-context.ts'
import { type BootDetailRow, bootDetailOf, bootDetailSelect } from './boot-rows.ts'

/** Throws `not_found`. */
export async function getBoot(context: ServiceContext, bootId: string): Promise<BootDetail> {
  const { db, clock, actor } = context
  const row = await db.boot.findUnique({
    where: { organizationId_id: { organizationId: actor.organizationId, id: bootId } },
    select: bootDetailSelect,
  })
  if (!row) throw new AppError('not_found')
  return bootDetailOf(row, { vdisk: await vdiskOf(context, row), now: clock() })
}

/** The edge names vDisk and version; whether they are of this organization is looked up, not believed. */
async function vdiskOf({ db, actor }: ServiceContext, row: BootDetailRow): Promise<BootDetail['vdisk']> {
  if (!row.vdiskId) return null
  const { organizationId } = actor
  const vdisk = await db.vdisk.findUnique({
    where: { organizationId_id: { organizationId, id: row.vdiskId } },
    select: { id: true, name: true },
  })
  if (!vdisk) return null
  const version = row.versionId
    ? await db.vdiskVersion.findFirst({
        where: { organizationId, id: row.versionId, vdiskId: vdisk.id },
        select: { number: true },
      })
    : null
  return { ...vdisk, versionNumber: version?.number ?? null }
}
