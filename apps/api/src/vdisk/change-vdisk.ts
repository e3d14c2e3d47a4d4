import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { definedOf, readUsers, requireFreeName, requireUnused } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import { organizationPlace } from '../rules/place.ts'
import { deleteObject, requireDeletion, restoreObject } from '../trash/public.ts'
import { withVdiskHeld } from './hold-vdisk.ts'
import type { createVdiskInput, removeVdiskInput, updateVdiskInput } from './schema.ts'
import { runningDevices } from './tally-devices.ts'
import type { updateWriteCacheInput } from './version-schema.ts'

const select = { id: true, name: true, revision: true } as const
const fieldsSelect = { name: true, note: true, storeId: true } as const

/** Throws `not_found` for the farm, `conflict` for a taken name, `invalid` for a store that is not of the farm. */
export async function createVdisk(
  context: ServiceContext,
  { farmId, ...fields }: z.output<typeof createVdiskInput>,
): Promise<ChangedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  await requireCurrent(context, { kind: 'farm', id: farmId })
  await requireFreeName(context, 'vdisk', { farmId, name: fields.name })
  await requireStoreOf(context, farmId, fields.storeId)
  const vdisk = await db.vdisk.create({
    data: { organizationId, farmId, ...fields, createdAt: clock() },
    select,
  })
  const { id, name } = vdisk
  const place = { ...organizationPlace, farmId }
  await recordChange(context, { kind: 'vdisk', id, name, place, before: null, after: fields })
  return vdisk
}

/** Throws like `createVdisk`; `conflict` also if somebody else changed it meanwhile. */
export async function updateVdisk(
  context: ServiceContext,
  { vdiskId, revision, ...fields }: z.output<typeof updateVdiskInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId, revision })
  const farmId = place.farmId ?? ''
  const where = ownRow(actor, vdiskId)
  const before = await db.vdisk.findUniqueOrThrow({ where, select: fieldsSelect })
  if (fields.name !== undefined && fields.name !== before.name)
    await requireFreeName(context, 'vdisk', { farmId, name: fields.name })
  await requireStoreOf(context, farmId, fields.storeId ?? null)
  const vdisk = await db.vdisk.update({ where, data: definedOf(fields), select })
  const after = await db.vdisk.findUniqueOrThrow({ where, select: fieldsSelect })
  await recordChange(context, { kind: 'vdisk', id: vdiskId, name: vdisk.name, place, before, after })
  return vdisk
}

/**
 * Deletes the vDisk with its versions; files on edges stay. Throws `not_found`; `conflict` while collections, devices
 * or boot menus use it: which.
 */
export async function removeVdisk(
  context: ServiceContext,
  { vdiskId, revision }: z.output<typeof removeVdiskInput>,
): Promise<DeletedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId, revision })
  const { name } = await db.vdisk.findUniqueOrThrow({ where: ownRow(actor, vdiskId), select })
  const ofVdisk = { organizationId, vdiskId }
  const running = await runningDevices(context, { vdiskId })
  requireUnused(
    [
      await readUsers(context, 'collection', ofVdisk),
      await readUsers(context, 'device', ofVdisk),
      await readUsers(context, 'bootMenu', { organizationId, entries: { some: ofVdisk } }),
      { noun: 'running device', ...running },
    ],
    { verb: 'used', instead: 'assign them another vDisk first, and restart running devices.' },
  )
  return deleteObject(context, { kind: 'vdisk', id: vdiskId, name, place })
}

async function requireStoreOf({ db, actor }: ServiceContext, farmId: string, storeId: string | null): Promise<void> {
  if (storeId === null) return
  const found = await db.store.findFirst({
    where: { organizationId: actor.organizationId, farmId, id: storeId },
    select: { id: true },
  })
  if (!found) throw new AppError('invalid', { public: 'The farm has no such store.' })
}

const writeCacheSelect = { writeCache: true, writeCacheLimitBytes: true, writeCacheFull: true } as const

/**
 * Sets the write cache of the vDisk's devices from their next boot on. Throws `not_found`; `conflict` if somebody
 * changed it meanwhile.
 */
export async function updateWriteCache(
  context: ServiceContext,
  { vdiskId, revision, ...settings }: z.output<typeof updateWriteCacheInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId, revision })
  const where = ownRow(actor, vdiskId)
  const before = await db.vdisk.findUniqueOrThrow({ where, select: writeCacheSelect })
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

/** Like `restoreObject`, with the vDisk locked: its newest version may change. */
export async function restoreVersion(
  context: ServiceContext,
  deletionId: string,
): Promise<{ id: string; name: string }> {
  const { id: versionId } = await requireDeletion(context, deletionId, ['version'])
  return withVdiskHeld(context, { versionId }, () => restoreObject(context, deletionId, ['version']))
}
