import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { definedOf, readUsers, requireFreeName, requireUnused } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import { personalityOf } from '../rules/device/personality.ts'
import { deleteObject } from '../trash/public.ts'
import type {
  createSiteInput,
  removeSiteInput,
  setCacheCopiesInput,
  setCacheCopiesResult,
  setCaptureInput,
  setCaptureResult,
  updateSiteInput,
} from './schema.ts'

const select = { id: true, name: true, revision: true } as const
const fieldsSelect = { name: true, timeZone: true, unknownDevices: true, personality: true } as const

/** Throws `not_found` for the farm, `conflict` for a taken name. */
export async function createSite(
  context: ServiceContext,
  { farmId, ...fields }: z.output<typeof createSiteInput>,
): Promise<ChangedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  await requireCurrent(context, { kind: 'farm', id: farmId })
  await requireFreeName(context, 'site', { farmId, name: fields.name })
  const site = await db.site.create({
    data: { organizationId, farmId, ...fields, createdAt: clock() },
    select,
  })
  const place = { farmId, siteId: site.id, collectionId: null }
  await recordChange(context, {
    kind: 'site',
    id: site.id,
    name: site.name,
    place,
    before: null,
    after: fields,
  })
  return site
}

/** Throws `not_found`; `conflict` for a taken name, or if somebody else changed it meanwhile. */
export async function updateSite(
  context: ServiceContext,
  { siteId, revision, ...fields }: z.output<typeof updateSiteInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'site', id: siteId, revision })
  const where = ownRow(actor, siteId)
  const before = await db.site.findUniqueOrThrow({ where, select: fieldsSelect })
  if (fields.name !== undefined && fields.name !== before.name)
    await requireFreeName(context, 'site', { farmId: place.farmId ?? '', name: fields.name })
  const site = await db.site.update({ where, data: definedOf(fields), select })
  const after = await db.site.findUniqueOrThrow({ where, select: fieldsSelect })
  await recordChange(context, {
    kind: 'site',
    id: siteId,
    name: site.name,
    place,
    before: { ...before, personality: personalityOf(before.personality) },
    after: { ...after, personality: personalityOf(after.personality) },
  })
  return site
}

/**
 * Deletes the site with its collections and devices. Throws `not_found`; `conflict` while it has edges that are not
 * revoked.
 */
export async function removeSite(
  context: ServiceContext,
  { siteId, revision }: z.output<typeof removeSiteInput>,
): Promise<DeletedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'site', id: siteId, revision })
  const { name } = await db.site.findUniqueOrThrow({ where: ownRow(actor, siteId), select })
  const where = { organizationId, siteId, revokedAt: null }
  requireUnused([await readUsers(context, 'edge', where)], {
    verb: 'served',
    instead: 'revoke them first. Otherwise they keep booting devices with their last desired state.',
  })
  // Nobody can enrol at a site in the trash.
  await db.joinToken.deleteMany({ where: { organizationId, siteId, usedAt: null } })
  return deleteObject(context, { kind: 'site', id: siteId, name, place })
}

/** Sets for which boots the site's edges keep the packets before the stream, from now on. Throws `not_found`. */
export async function setCapture(
  context: ServiceContext,
  { siteId, capture }: z.output<typeof setCaptureInput>,
): Promise<z.infer<typeof setCaptureResult>> {
  const { db, actor } = context
  const where = ownRow(actor, siteId)
  return db.$transaction(async (transaction) => {
    const before = await transaction.site.findUnique({ where, select: { name: true, capture: true } })
    if (!before) throw new AppError('not_found')
    await transaction.site.update({ where, data: { capture }, select: { id: true } })
    await recordChange(context, {
      kind: 'site',
      id: siteId,
      name: before.name,
      before: { capture: before.capture },
      after: { capture },
    })
    return { capture }
  })
}

/** Sets how often the site's edges copy write caches for another edge of the site; 0: never. Throws `not_found`. */
export async function setCacheCopies(
  context: ServiceContext,
  { siteId, cacheCopyHours }: z.output<typeof setCacheCopiesInput>,
): Promise<z.infer<typeof setCacheCopiesResult>> {
  const { db, actor } = context
  const where = ownRow(actor, siteId)
  return db.$transaction(async (transaction) => {
    const before = await transaction.site.findUnique({ where, select: { name: true, cacheCopyHours: true } })
    if (!before) throw new AppError('not_found')
    await transaction.site.update({ where, data: { cacheCopyHours }, select: { id: true } })
    await recordChange(context, {
      kind: 'site',
      id: siteId,
      name: before.name,
      before: { cacheCopyHours: before.cacheCopyHours },
      after: { cacheCopyHours },
    })
    return { cacheCopyHours }
  })
}
