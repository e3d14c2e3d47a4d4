import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { definedOf, readUsers, requireFreeName, requireUnused } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { recordChange } from '../events/record-change.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import { organizationPlace } from '../rules/place.ts'
import { deleteObject } from '../trash/public.ts'
import type { createStoreInput, removeStoreInput, updateStoreInput } from './schema.ts'

const select = { id: true, name: true, revision: true } as const
const fieldsSelect = { name: true, note: true } as const

/** Throws `not_found` for the farm, `conflict` for a taken name. */
export async function createStore(
  context: ServiceContext,
  { farmId, ...fields }: z.output<typeof createStoreInput>,
): Promise<ChangedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  await requireCurrent(context, { kind: 'farm', id: farmId })
  await requireFreeName(context, 'store', { farmId, name: fields.name })
  const store = await db.store.create({
    data: { organizationId, farmId, ...fields, createdAt: clock() },
    select,
  })
  const { id, name } = store
  const place = { ...organizationPlace, farmId }
  await recordChange(context, { kind: 'store', id, name, place, before: null, after: fields })
  return store
}

/** Throws `not_found`; `conflict` for a taken name, or if somebody else changed it meanwhile. */
export async function updateStore(
  context: ServiceContext,
  { storeId, revision, ...fields }: z.output<typeof updateStoreInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'store', id: storeId, revision })
  const where = ownRow(actor, storeId)
  const before = await db.store.findUniqueOrThrow({ where, select: fieldsSelect })
  if (fields.name !== undefined && fields.name !== before.name)
    await requireFreeName(context, 'store', { farmId: place.farmId ?? '', name: fields.name })
  const store = await db.store.update({ where, data: definedOf(fields), select })
  const after = await db.store.findUniqueOrThrow({ where, select: fieldsSelect })
  await recordChange(context, { kind: 'store', id: storeId, name: store.name, place, before, after })
  return store
}

/** Throws `not_found`; `conflict` while it contains vDisks. */
export async function removeStore(
  context: ServiceContext,
  { storeId, revision }: z.output<typeof removeStoreInput>,
): Promise<DeletedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'store', id: storeId, revision })
  const { name } = await db.store.findUniqueOrThrow({ where: ownRow(actor, storeId), select })
  const where = { organizationId, storeId }
  requireUnused([await readUsers(context, 'vdisk', where)], {
    verb: 'used',
    instead: 'choose another store for them.',
  })
  return deleteObject(context, { kind: 'store', id: storeId, name, place })
}
