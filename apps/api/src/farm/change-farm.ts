import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { readUsers, requireFreeName, requireUnused } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { recordChange, recordNothing } from '../events/record-change.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import { organizationPlace } from '../rules/place.ts'
import { deleteObject } from '../trash/public.ts'
import type { createFarmInput, removeFarmInput, updateFarmInput } from './schema.ts'

const select = { id: true, name: true, revision: true } as const

/** Throws `conflict` for a taken name. */
export async function createFarm(
  context: ServiceContext,
  { name }: z.output<typeof createFarmInput>,
): Promise<ChangedObject> {
  const { db, clock, actor } = context
  await requireFreeName(context, 'farm', { name })
  const farm = await db.farm.create({
    data: { organizationId: actor.organizationId, name, createdAt: clock() },
    select,
  })
  const place = { ...organizationPlace, farmId: farm.id }
  await recordChange(context, { kind: 'farm', id: farm.id, name, place, before: null, after: { name } })
  return farm
}

/** Throws `not_found`; `conflict` for a taken name, or if somebody else changed it meanwhile. */
export async function updateFarm(
  context: ServiceContext,
  { farmId, revision, name }: z.output<typeof updateFarmInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'farm', id: farmId, revision })
  const where = ownRow(actor, farmId)
  const before = await db.farm.findUniqueOrThrow({ where, select })
  if (name === undefined || name === before.name) {
    recordNothing(context)
    return before
  }
  await requireFreeName(context, 'farm', { name })
  const after = await db.farm.update({ where, data: { name }, select })
  await recordChange(context, {
    kind: 'farm',
    id: farmId,
    name,
    place,
    before: { name: before.name },
    after: { name },
  })
  return after
}

/**
 * Deletes the farm with everything that belongs to it. Throws `not_found`; `conflict` while it has edges that are not
 * revoked.
 */
export async function removeFarm(
  context: ServiceContext,
  { farmId, revision }: z.output<typeof removeFarmInput>,
): Promise<DeletedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'farm', id: farmId, revision })
  const { name } = await db.farm.findUniqueOrThrow({ where: ownRow(actor, farmId), select })
  const where = { organizationId, site: { farmId }, revokedAt: null }
  requireUnused([await readUsers(context, 'edge', where)], {
    verb: 'served',
    instead: 'revoke them first. Otherwise they keep booting devices with their last desired state.',
  })
  return deleteObject(context, { kind: 'farm', id: farmId, name, place })
}
