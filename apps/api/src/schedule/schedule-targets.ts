import { Prisma } from '@bootfarm/db'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type Actor, may } from '../rules/actor.ts'
import type { Permission } from '../rules/permissions.ts'
import type { ScheduleTarget } from './schema.ts'

/** The places of a schedule's devices. */
export interface Scope {
  organizationId: string
  farmId: string
  siteId: string | null
}

/**
 * Throws `not_found` for a farm or site that is absent or that the actor may not see schedules of, `forbidden` where
 * the permission is missing there.
 */
export async function requireScope(
  db: DbOrTransaction,
  actor: Actor,
  { farmId, siteId, permission }: { farmId: string; siteId: string | null; permission: Permission },
): Promise<Scope> {
  const { organizationId } = actor
  const farm = await db.farm.findUnique({
    where: ownRow({ organizationId }, farmId),
    select: { sites: { where: siteId ? { id: siteId } : {}, take: 1, select: { id: true } } },
  })
  const place = { farmId, siteId, collectionId: null }
  const isThere = farm && (siteId === null || farm.sites.length > 0)
  if (!isThere || !may(actor, 'site.read', place)) throw new AppError('not_found')
  if (!may(actor, permission, place)) throw new AppError('forbidden')
  return { organizationId, farmId, siteId }
}

/**
 * A target is held against the scope's own devices and collections: a foreign one is refused like one that there is
 * not, with `invalid`. A tag may have no device yet.
 */
export async function requireTargets(db: DbOrTransaction, scope: Scope, targets: ScheduleTarget[]): Promise<void> {
  const deviceIds = targets.flatMap((target) => (target.kind === 'device' ? [target.deviceId] : []))
  const collectionIds = targets.flatMap((target) => (target.kind === 'collection' ? [target.collectionId] : []))
  const where = { organizationId: scope.organizationId, ...placeOf(scope) }
  const devices = await db.device.count({ where: { ...where, id: { in: deviceIds } } })
  if (devices !== new Set(deviceIds).size)
    throw new AppError('invalid', { public: 'The schedule names a device of another site.' })
  const collections = await db.collection.count({ where: { ...where, id: { in: collectionIds } } })
  if (collections !== new Set(collectionIds).size)
    throw new AppError('invalid', { public: 'The schedule names a collection of another site.' })
}

export function placeOf({ farmId, siteId }: Scope): { siteId: string } | { site: { farmId: string } } {
  return siteId ? { siteId } : { site: { farmId } }
}

/** Rows of `device` (as `d`) that these targets name, wherever they are. */
export function targetFilter(targets: ScheduleTarget[]): Prisma.DeviceWhereInput {
  const deviceIds = targets.flatMap((target) => (target.kind === 'device' ? [target.deviceId] : []))
  const collectionIds = targets.flatMap((target) => (target.kind === 'collection' ? [target.collectionId] : []))
  const tags = targets.flatMap((target) => (target.kind === 'tag' ? [target.tag] : []))
  return {
    OR: [
      { id: { in: deviceIds } },
      { collectionId: { in: collectionIds } },
      ...(tags.length > 0 ? [{ tags: { hasSome: tags } }] : []),
    ],
  }
}

/** Rows of `device` (as `d`) that a stored schedule names. */
export function storedTargetSql(organizationId: string, scheduleId: string): Prisma.Sql {
  return Prisma.sql`exists (select 1 from schedule_target t where t.organization_id = ${organizationId}::uuid
    and t.schedule_id = ${scheduleId}::uuid
    and (t.device_id = d.id or t.collection_id = d.collection_id or d.tags @> array[t.tag]))`
}

/** Such a device is not started: it is switched off here, or has nothing to boot. */
export const cannotStart: Prisma.DeviceWhereInput = {
  OR: [
    { enabled: false },
    {
      vdiskId: null,
      collection: { vdiskId: null, bootMenuId: null },
      OR: [{ bootMenuChoice: { not: 'own' } }, { bootMenuId: null }],
    },
  ],
}

export function targetRows(targets: ScheduleTarget[]) {
  const byText = new Map(targets.map((target) => [JSON.stringify(target), target]))
  return [...byText.values()].map((target, position) => ({
    position,
    kind: target.kind,
    ...(target.kind === 'device' ? { deviceId: target.deviceId } : {}),
    ...(target.kind === 'collection' ? { collectionId: target.collectionId } : {}),
    ...(target.kind === 'tag' ? { tag: target.tag } : {}),
  }))
}
