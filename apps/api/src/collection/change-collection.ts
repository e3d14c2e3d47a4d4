import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { definedOf, requireFreeName, requireUnused } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import { personalityOf } from '../rules/device/personality.ts'
import type { Place } from '../rules/place.ts'
import { deleteObject } from '../trash/public.ts'
import type { createCollectionInput, removeCollectionInput, updateCollectionInput } from './schema.ts'

const select = { id: true, name: true, revision: true } as const
const fieldsSelect = {
  name: true,
  vdiskId: true,
  templateDeviceId: true,
  personality: true,
  keyLearn: true,
  keyWithout: true,
  bootSettings: true,
} as const

/** Throws `not_found` for the site, `conflict` for a taken name, `invalid` for a vDisk that is not of its farm. */
export async function createCollection(
  context: ServiceContext,
  { siteId, ...fields }: z.output<typeof createCollectionInput>,
): Promise<ChangedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const site = await requireCurrent(context, { kind: 'site', id: siteId })
  await requireFreeName(context, 'collection', { siteId, name: fields.name })
  await requireVdiskOfFarm(context, site, fields.vdiskId)
  const collection = await db.collection.create({
    data: { organizationId, siteId, ...fields, createdAt: clock() },
    select,
  })
  const { id, name } = collection
  const place = { ...site, collectionId: id }
  await recordChange(context, { kind: 'collection', id, name, place, before: null, after: fields })
  return collection
}

/**
 * A change of what its devices boot takes effect with their next boot. Throws `not_found`; `conflict` for a taken name,
 * or if somebody else changed it meanwhile; `invalid` for a vDisk that is not in its farm, or a template that is not in
 * the collection.
 */
export async function updateCollection(
  context: ServiceContext,
  { collectionId, revision, ...fields }: z.output<typeof updateCollectionInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'collection', id: collectionId, revision })
  const siteId = place.siteId ?? ''
  const where = ownRow(actor, collectionId)
  const before = await db.collection.findUniqueOrThrow({ where, select: fieldsSelect })
  if (fields.name !== undefined && fields.name !== before.name)
    await requireFreeName(context, 'collection', { siteId, name: fields.name })
  await requireVdiskOfFarm(context, place, fields.vdiskId ?? null)
  if (fields.templateDeviceId) await requireDeviceOf(context, siteId, fields.templateDeviceId)
  const collection = await db.collection.update({ where, data: definedOf(fields), select })
  const after = await db.collection.findUniqueOrThrow({ where, select: fieldsSelect })
  if (before.keyLearn !== 'approve' && after.keyLearn === 'approve') await forgetAcceptedKeys(context, collectionId)
  await recordChange(context, {
    kind: 'collection',
    id: collectionId,
    name: collection.name,
    place,
    before: { ...before, personality: personalityOf(before.personality) },
    after: { ...after, personality: personalityOf(after.personality) },
  })
  return collection
}

/** With its devices. Throws `not_found`; `conflict` while rules for discovered devices adopt into it. */
export async function removeCollection(
  context: ServiceContext,
  { collectionId, revision }: z.output<typeof removeCollectionInput>,
): Promise<DeletedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'collection', id: collectionId, revision })
  const { name } = await db.collection.findUniqueOrThrow({ where: ownRow(actor, collectionId), select })
  const rules = await db.adoptionRule.findMany({
    where: { organizationId, collectionId },
    orderBy: { position: 'asc' },
    select: { position: true },
  })
  requireUnused([{ noun: 'rule', count: rules.length, names: rules.map(({ position }) => `number ${position + 1}`) }], {
    verb: 'filled',
    instead: 'change the site’s rules for discovered devices first.',
  })
  const deleted = await deleteObject(context, { kind: 'collection', id: collectionId, name, place })
  return deleted
}

/** Edges forget the keys that only they have accepted, and report them for approval. */
async function forgetAcceptedKeys({ db, actor }: ServiceContext, collectionId: string): Promise<void> {
  await db.device.updateMany({
    where: { organizationId: actor.organizationId, collectionId, keySha256: null, keyless: false },
    data: { keyRevision: { increment: 1 } },
  })
}

async function requireVdiskOfFarm(
  { db, actor }: ServiceContext,
  { farmId }: Place,
  vdiskId: string | null,
): Promise<void> {
  if (vdiskId === null) return
  const found = await db.vdisk.findFirst({
    where: { organizationId: actor.organizationId, farmId: farmId ?? '', id: vdiskId },
    select: { id: true },
  })
  if (!found) throw new AppError('invalid', { public: 'The farm has no such vDisk.' })
}

async function requireDeviceOf({ db, actor }: ServiceContext, siteId: string, id: string): Promise<void> {
  const found = await db.device.findFirst({
    where: { organizationId: actor.organizationId, siteId, id },
    select: { id: true },
  })
  if (!found) throw new AppError('invalid', { public: 'The site has no such device to use as template.' })
}
