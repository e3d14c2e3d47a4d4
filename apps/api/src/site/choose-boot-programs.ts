import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { setOfCollectionInput, setOfDeviceInput, setOfSiteInput } from '../rules/boot-programs.ts'
import { requireReportedSet } from './boot-program-sets.ts'

type Chosen = { bootProgramSet: string | null }

/**
 * Which programs the site's devices are given that have no others. Throws `not_found`, `conflict` for a set that no
 * edge of it has.
 */
export async function chooseForSite(
  context: ServiceContext,
  { siteId, bootProgramSet }: z.output<typeof setOfSiteInput>,
): Promise<Chosen> {
  const { db } = context
  const where = keyOf(context, siteId)
  const site = await db.site.findUnique({ where, select: { name: true, bootProgramSet: true } })
  await change(context, { kind: 'site', id: siteId, was: site && { ...site, siteId }, bootProgramSet })
  await db.site.update({ where, data: { bootProgramSet }, select: { id: true } })
  return { bootProgramSet }
}

/** Like `chooseForSite`, instead of the site's. */
export async function chooseForCollection(
  context: ServiceContext,
  { collectionId, bootProgramSet }: z.output<typeof setOfCollectionInput>,
): Promise<Chosen> {
  const { db } = context
  const where = keyOf(context, collectionId)
  const was = await db.collection.findUnique({ where, select: chosenSelect })
  await change(context, { kind: 'collection', id: collectionId, was, bootProgramSet })
  await db.collection.update({ where, data: { bootProgramSet }, select: { id: true } })
  return { bootProgramSet }
}

/** Like `chooseForSite`, instead of the collection's and the site's. */
export async function chooseForDevice(
  context: ServiceContext,
  { deviceId, bootProgramSet }: z.output<typeof setOfDeviceInput>,
): Promise<Chosen> {
  const { db } = context
  const where = keyOf(context, deviceId)
  const was = await db.device.findUnique({ where, select: chosenSelect })
  await change(context, { kind: 'device', id: deviceId, was, bootProgramSet })
  await db.device.update({ where, data: { bootProgramSet }, select: { id: true } })
  return { bootProgramSet }
}

const chosenSelect = { name: true, siteId: true, bootProgramSet: true } as const

function keyOf({ actor: { organizationId } }: ServiceContext, id: string) {
  return ownRow({ organizationId }, id)
}

interface ChangeOfSet {
  kind: 'site' | 'collection' | 'device'
  id: string
  /** Null where there is no such thing. */
  was: { name: string; siteId: string; bootProgramSet: string | null } | null
  bootProgramSet: string | null
}

/** Everything that belongs to writing it. */
async function change(context: ServiceContext, { kind, id, was, bootProgramSet }: ChangeOfSet): Promise<void> {
  if (!was) throw new AppError('not_found')
  const { name, siteId } = was
  const { organizationId } = context.actor
  await requireReportedSet(context.db, { organizationId, siteId }, bootProgramSet)
  await recordChange(context, {
    kind,
    id,
    name,
    before: { bootProgramSet: was.bootProgramSet },
    after: { bootProgramSet },
  })
}
