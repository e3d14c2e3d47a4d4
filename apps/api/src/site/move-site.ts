import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { requireFreeName, usersText } from '../context/in-use.ts'
import { ownRow, type ServiceContext, withTrash } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange, recordNothing } from '../events/record-change.ts'
import type { ChangedObject } from '../rules/changed-object.ts'
import type { moveSiteInput } from './schema.ts'

/**
 * Moves it to another farm, with edges, collections, devices and boots. vDisks and boot menus stay with the farm: if
 * the site's collections and devices have any, the result is a `conflict` that names them, unless `dropForeign` removes
 * them. Also throws `not_found`, and `conflict` for a taken name or if somebody changed it meanwhile.
 */
export async function moveSite(
  context: ServiceContext,
  { siteId, farmId, revision, dropForeign }: z.output<typeof moveSiteInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const from = await requireCurrent(context, { kind: 'site', id: siteId, revision })
  await requireCurrent(context, { kind: 'farm', id: farmId })
  const where = ownRow(actor, siteId)
  const select = { id: true, name: true, revision: true } as const
  const before = await db.site.findUniqueOrThrow({ where, select })
  if (from.farmId === farmId) {
    recordNothing(context)
    return before
  }
  await requireFreeName(context, 'site', { farmId, name: before.name })
  await dropOrRefuse(context, siteId, dropForeign)
  const site = await db.site.update({ where, data: { farmId }, select })
  await withTrash(db, () => db.deletion.updateMany({ where: { organizationId, siteId }, data: { farmId } }))
  await recordChange(context, {
    kind: 'site',
    id: siteId,
    name: site.name,
    place: { ...from, farmId },
    before: { farmId: from.farmId },
    after: { farmId },
  })
  return site
}

async function dropOrRefuse({ db, actor }: ServiceContext, siteId: string, dropForeign: boolean): Promise<void> {
  const { organizationId } = actor
  const uses = { OR: [{ vdiskId: { not: null } }, { bootMenuId: { not: null } }] }
  const order = { orderBy: { name: 'asc' as const }, take: 3, select: { name: true } }
  const ofSite = { organizationId, siteId, ...uses }
  const collections = await db.collection.findMany({ where: ofSite, ...order })
  const devices = await db.device.findMany({ where: ofSite, ...order })
  const texts = [
    usersText({
      noun: 'collection',
      count: await db.collection.count({ where: ofSite }),
      names: collections.map(({ name }) => name),
    }),
    usersText({
      noun: 'device',
      count: await db.device.count({ where: ofSite }),
      names: devices.map(({ name }) => name),
    }),
  ].filter((text) => text !== null)
  if (texts.length === 0) return
  if (!dropForeign)
    throw new AppError('conflict', {
      public: `vDisks and boot menus stay in the farm, so ${texts.join(' and ')} would lose theirs. Confirm that, or choose others first.`,
    })
  // Objects in the trash also come back without them.
  await withTrash(db, async () => {
    await db.collection.updateMany({ where: ofSite, data: { vdiskId: null, bootMenuId: null } })
    await db.device.updateMany({
      where: { ...ofSite, bootMenuChoice: 'own' },
      data: { bootMenuChoice: 'collection' },
    })
    await db.device.updateMany({ where: ofSite, data: { vdiskId: null, bootMenuId: null } })
  })
}
