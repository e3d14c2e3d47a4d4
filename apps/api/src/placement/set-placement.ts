import type { z } from 'zod'
import { requireCurrent, staleError } from '../access/require-current.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { Place } from '../rules/place.ts'
import { getFarmPlacement, getPlacement } from './get-placement.ts'
import { readPlacement } from './read-placement.ts'
import type { farmPlacementSetInput, PlacementView, placementSetInput, Rules } from './schema.ts'

/**
 * Chooses which edges hold a vDisk's versions. Copies are never deleted by it. Throws `not_found`; `invalid` for a site
 * that is not of the vDisk's farm; `conflict` if somebody else changed it meanwhile.
 */
export async function setPlacement(
  context: ServiceContext,
  { vdiskId, revision, rules }: z.output<typeof placementSetInput>,
): Promise<PlacementView> {
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId })
  const { name } = await context.db.vdisk.findUniqueOrThrow({
    where: ownRow(context.actor, vdiskId),
    select: { name: true },
  })
  const saved = { farmId: place.farmId ?? '', vdiskId, revision, rules }
  return change(context, saved, { kind: 'vdisk', id: vdiskId, name, place }, () => getPlacement(context, vdiskId))
}

/** The same for the vDisks of a farm that have none. */
export async function setFarmPlacement(
  context: ServiceContext,
  { farmId, revision, rules }: z.output<typeof farmPlacementSetInput>,
): Promise<PlacementView> {
  const place = await requireCurrent(context, { kind: 'farm', id: farmId })
  const { name } = await context.db.farm.findUniqueOrThrow({
    where: ownRow(context.actor, farmId),
    select: { name: true },
  })
  const saved = { farmId, vdiskId: null, revision, rules }
  return change(context, saved, { kind: 'farm', id: farmId, name, place }, () => getFarmPlacement(context, farmId))
}

/** Saves it, with an entry in the audit log about what it belongs to. */
async function change(
  context: ServiceContext,
  saved: NewPlacement,
  changed: { kind: 'vdisk' | 'farm'; id: string; name: string; place: Place },
  read: () => Promise<PlacementView>,
): Promise<PlacementView> {
  const before = await read()
  await save(context, saved)
  const after = await read()
  await recordChange(context, {
    kind: changed.kind,
    id: changed.id,
    name: changed.name,
    place: changed.place,
    before: { placement: before },
    after: { placement: after },
  })
  return after
}

interface NewPlacement {
  farmId: string
  vdiskId: string | null
  revision: number
  rules: Rules | null
}

/** The caller holds the vDisk's or the farm's row. */
async function save({ db, clock, actor }: ServiceContext, { farmId, vdiskId, revision, rules }: NewPlacement) {
  const { organizationId } = actor
  const { own } = await readPlacement(db, { organizationId, farmId, vdiskId })
  const current = (own?.revision ?? 0) + 1
  if (revision !== current) throw staleError('placement', '', current)
  await requireSites({ db, actor }, { farmId, rules })
  const changed = { inherits: rules === null, changedAt: clock(), revision: current }
  const { id: placementId } = own
    ? await db.placement.update({ where: ownRow(actor, own.id), data: changed, select: { id: true } })
    : await db.placement.create({ data: { organizationId, farmId, vdiskId, ...changed }, select: { id: true } })
  await db.placementSite.deleteMany({ where: { organizationId, placementId } })
  if (!rules) return
  const rows = [...rules.sites, ...(rules.others ? [Object.assign({ siteId: null }, rules.others)] : [])]
  await db.placementSite.createMany({
    data: rows.map(({ siteId, edges, rateBytesPerSecond, window }) => ({
      organizationId,
      placementId,
      siteId,
      edges,
      rateBytesPerSecond,
      windowFrom: window?.from ?? null,
      windowTo: window?.to ?? null,
    })),
  })
}

async function requireSites(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  { farmId, rules }: { farmId: string; rules: Rules | null },
): Promise<void> {
  const siteIds = rules?.sites.map(({ siteId }) => siteId) ?? []
  if (siteIds.length === 0) return
  const count = await db.site.count({
    where: { organizationId: actor.organizationId, farmId, id: { in: siteIds } },
  })
  if (count < siteIds.length)
    throw new AppError('invalid', { public: 'The farm does not have one of these sites. Leave it out.' })
}
