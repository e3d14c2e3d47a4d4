import type { z } from 'zod'
import type {
  ChangedObject,
  DeletedObject,
  registerVersionInput,
  removeVersionInput,
  updateVersionInput,
} from '../../domain/object-view.ts'
import { recordChange } from '../audit/record-change.ts'
import { requireUnused } from '../object/in-use.ts'
import { requireCurrent } from '../object/require-current.ts'
import type { DbOrTransaction, ServiceContext } from '../service-context.ts'
import { definedOf } from '../site/change-site.ts'
import { deleteObject } from '../trash/delete-object.ts'
import { withTrash } from '../trash/with-trash.ts'
import { withPromotionTold } from '../webhook/tell-promoted-version.ts'
import { runningDevices } from './change-vdisk.ts'

const versionSelect = { id: true, number: true, revision: true, vdisk: { select: { name: true } } } as const
const firstNames = { orderBy: { name: 'asc' as const }, take: 3, select: { name: true } }

interface VersionRow {
  id: string
  number: number
  revision: number
  vdisk: { name: string }
}

/**
 * Registers files that lie in the edges' stores as the vDisk's next version: its devices boot it from now on, those that run keep
 * theirs. Numbers are never given twice. Throws `not_found`.
 */
export function registerVersion(
  context: ServiceContext,
  input: z.output<typeof registerVersionInput>,
): Promise<ChangedObject> {
  return withPromotionTold(context, { vdiskId: input.vdiskId }, () => register(context, input))
}

async function register(
  context: ServiceContext,
  { vdiskId, ...fields }: z.output<typeof registerVersionInput>,
): Promise<ChangedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId })
  const number = await withTrash(db, async () => {
    const last = await db.vdiskVersion.aggregate({
      where: { organizationId, vdiskId },
      _max: { number: true },
    })
    return (last._max.number ?? 0) + 1
  })
  const row = await db.vdiskVersion.create({
    data: { organizationId, vdiskId, number, ...fields, createdAt: clock() },
    select: versionSelect,
  })
  const version = changedOf(row)
  await recordChange(context, {
    ...{ kind: 'version', id: row.id, name: version.name, place },
    before: null,
    after: { number, ...fields },
  })
  return version
}

/** Its note and its labels; never what it holds. Throws `not_found`; `conflict` where somebody else changed it meanwhile. */
export async function updateVersion(
  context: ServiceContext,
  { versionId, revision, ...fields }: z.output<typeof updateVersionInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'version', id: versionId, revision })
  const where = { organizationId_id: { organizationId: actor.organizationId, id: versionId } }
  const fieldsSelect = { note: true, labels: true } as const
  const before = await db.vdiskVersion.findUniqueOrThrow({ where, select: fieldsSelect })
  const row = await db.vdiskVersion.update({ where, data: definedOf(fields), select: versionSelect })
  const after = await db.vdiskVersion.findUniqueOrThrow({ where, select: fieldsSelect })
  const version = changedOf(row)
  await recordChange(context, { kind: 'version', id: versionId, name: version.name, place, before, after })
  return version
}

/**
 * Files on edges stay. Throws `not_found`; `conflict` while running devices read it, a boot menu offers it, or it is the newest one
 * and so what collections and devices boot.
 */
export function removeVersion(
  context: ServiceContext,
  input: z.output<typeof removeVersionInput>,
): Promise<DeletedObject> {
  return withPromotionTold(context, { versionId: input.versionId }, () => remove(context, input))
}

async function remove(
  context: ServiceContext,
  { versionId, revision }: z.output<typeof removeVersionInput>,
): Promise<DeletedObject> {
  const { db, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'version', id: versionId, revision })
  const row = await db.vdiskVersion.findUniqueOrThrow({
    where: { organizationId_id: { organizationId, id: versionId } },
    select: { ...versionSelect, vdiskId: true },
  })
  const newer = await db.vdiskVersion.findFirst({
    where: { organizationId, vdiskId: row.vdiskId, number: { gt: row.number } },
    select: { id: true },
  })
  const ofVersion = { organizationId, entries: { some: { organizationId, versionId } } }
  const menus = await db.bootMenu.findMany({ where: ofVersion, ...firstNames })
  const users = [
    { noun: 'running device', ...(await runningDevices(context, { versionId })) },
    {
      noun: 'boot menu',
      count: await db.bootMenu.count({ where: ofVersion }),
      names: menus.map(({ name }) => name),
    },
  ]
  if (!newer) users.push(...(await bootersOfNewest(db, { organizationId, vdiskId: row.vdiskId })))
  requireUnused(users, {
    verb: 'used',
    instead: 'restart what runs, take it out of menus, or give them a newer version or another vDisk first.',
  })
  const { name } = changedOf(row)
  return deleteObject(context, { kind: 'version', id: versionId, name, place })
}

async function bootersOfNewest(
  db: DbOrTransaction,
  ofVdisk: { organizationId: string; vdiskId: string },
): Promise<{ noun: string; count: number; names: string[] }[]> {
  const collections = await db.collection.findMany({ where: ofVdisk, ...firstNames })
  const devices = await db.device.findMany({ where: ofVdisk, ...firstNames })
  return [
    {
      noun: 'collection',
      count: await db.collection.count({ where: ofVdisk }),
      names: collections.map(({ name }) => name),
    },
    {
      noun: 'device',
      count: await db.device.count({ where: ofVdisk }),
      names: devices.map(({ name }) => name),
    },
  ]
}

function changedOf({ id, number, revision, vdisk }: VersionRow): ChangedObject {
  return { id, revision, name: `${vdisk.name} version ${number}` }
}
