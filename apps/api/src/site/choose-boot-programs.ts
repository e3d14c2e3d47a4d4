import type { z } from 'zod'
import { byName } from '../context/keyset.ts'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import type { SitePlace } from '../discovery/public.ts'
import { heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import {
  bootProgramSetsOf,
  type bootProgramSetsView,
  type setOfCollectionInput,
  type setOfDeviceInput,
  type setOfSiteInput,
} from '../rules/boot-programs.ts'

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
  /** Returns null if it does not exist. */
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

/** Returns the sets that the site's edges reported in their last heartbeats. Throws `not_found`. */
export async function getBootProgramSets(
  { db, actor }: ServiceContext,
  siteId: string,
): Promise<z.infer<typeof bootProgramSetsView>> {
  const place = { organizationId: actor.organizationId, siteId }
  const site = await db.site.findUnique({ where: ownRow(place, siteId), select: { id: true } })
  if (!site) throw new AppError('not_found')
  return { sets: await readSets(db, place) }
}

/** Throws `conflict` for a set that no edge of the site reports. */
export async function requireReportedSet(
  db: DbOrTransaction,
  place: SitePlace,
  bootProgramSet: string | null,
): Promise<void> {
  if (bootProgramSet === null) return
  const sets = await readSets(db, place)
  if (sets.some(({ name }) => name === bootProgramSet)) return
  throw new AppError('conflict', {
    public: `No edge of this site has the boot programs “${bootProgramSet}”. Import them there with bootfarm-edge boot-files.`,
  })
}

async function readSets(db: DbOrTransaction, place: SitePlace) {
  const edges = await db.edge.findMany({
    where: { ...place, revokedAt: null },
    orderBy: byName,
    select: { id: true, name: true, heartbeat: true },
  })
  return bootProgramSetsOf(
    edges.map(({ id, name, heartbeat }) => ({
      id,
      name,
      programs: heartbeatOf({ heartbeat })?.bootPrograms ?? [],
    })),
  )
}
