import { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { visibleCollections, visibleDevices, visibleDevicesSql } from '../access/visible.ts'
import { requireUnused, type Users } from '../context/in-use.ts'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import type { DeletedObject } from '../rules/changed-object.ts'
import type { Clock } from '../rules/clock.ts'
import { deleteObject } from '../trash/public.ts'
import { changedVersionOf, changedVersionSelect } from './change-version.ts'
import { withVdiskHeld } from './hold-vdisk.ts'
import { runningDevices, type Tally } from './tally-devices.ts'
import { readResolved, readVersions, versionFactsSelect } from './version-facts.ts'
import type { removeVersionInput } from './version-schema.ts'
import { apply, holderOf } from './version-steps.ts'
import { readPromotion } from './waiting-promotion.ts'

const firstNames = { orderBy: { name: 'asc' as const }, take: 3, select: { name: true } }

/**
 * The edges' copies stay until the trash is emptied. Throws `not_found`; `conflict` while anything needs it: running
 * devices, boot menus, collections and devices that boot it by default, private images above it, the vDisk's override,
 * pending release or waiting promotion, or store jobs.
 */
export function removeVersion(
  context: ServiceContext,
  input: z.output<typeof removeVersionInput>,
): Promise<DeletedObject> {
  return withVdiskHeld(context, { versionId: input.versionId }, () => remove(context, input))
}

async function remove(
  context: ServiceContext,
  { versionId, revision }: z.output<typeof removeVersionInput>,
): Promise<DeletedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'version', id: versionId, revision })
  const row = await db.vdiskVersion.findUniqueOrThrow({
    where: ownRow(actor, versionId),
    select: { ...changedVersionSelect, vdiskId: true, isProtected: true },
  })
  if (row.isProtected) throw new AppError('conflict', { public: protectedText(row.number) })
  requireUnused(await versionHolders(context, versionId), {
    verb: 'used',
    instead:
      'restart what runs, seal or discard what is in maintenance, take it out of menus, promote or revert to another version, take the override or the release back, cancel its promotion, reset private images, or wait for the work to end first.',
  })
  const { name } = changedVersionOf(row)
  const versions = await readVersions(db, { organizationId, vdiskId: row.vdiskId })
  const refusal = versions && apply(versions, { kind: 'delete', versionId }, clock()).refusal
  if (refusal) throw new AppError(refusal.code, { public: refusal.text })
  return deleteObject(context, { kind: 'version', id: versionId, name, place })
}

/** One of the holders; it needs the version, and is nothing that devices boot. */
export const unfinishedJob = 'unfinished store job'

export function protectedText(number: number): string {
  return `Version ${number} is protected against deletion. Edit it, and take that back first.`
}

/** The part of the organization in which holders of a version are looked for. */
interface HoldersSeen {
  devices: Prisma.DeviceWhereInput
  devicesSql: Prisma.Sql
  collections: Prisma.CollectionWhereInput
  /** Those that run the version, where they are known. */
  running?: Tally
}

/** For a deletion: a key that may delete, and sees no devices, must not delete what they run. */
const everything: HoldersSeen = { devices: {}, devicesSql: Prisma.sql`true`, collections: {} }

/** For a preview, which names the holders. */
export function onlyVisible(actor: Actor): HoldersSeen {
  return {
    devices: visibleDevices(actor),
    devicesSql: visibleDevicesSql(actor),
    collections: visibleCollections(actor),
  }
}

/**
 * Returns everything that needs the version, so that it cannot be deleted: each with a count and the first names.
 * Throws `not_found`.
 */
export async function versionHolders(
  context: { db: DbOrTransaction; clock: Clock; actor: { organizationId: string } },
  versionId: string,
  seen: HoldersSeen = everything,
): Promise<Users[]> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const row = await db.vdiskVersion.findUnique({
    where: ownRow(actor, versionId),
    select: { ...versionFactsSelect, vdiskId: true, vdisk: { select: { name: true } } },
  })
  if (!row) throw new AppError('not_found')
  const { vdiskId } = row
  const resolved = (await readResolved(db, { organizationId, vdiskIds: [vdiskId] }, clock())).get(vdiskId)
  const holder = resolved ? holderOf(resolved, row) : null
  const ofVersion = { organizationId, entries: { some: { organizationId, versionId } } }
  const menus = await db.bootMenu.findMany({ where: ofVersion, ...firstNames })
  const jobs = await db.storeJob.findMany({
    where: {
      organizationId,
      state: { in: ['queued', 'running'] },
      OR: [{ versionId }, { intoVersionId: versionId }],
    },
    orderBy: [{ askedAt: 'asc' }, { id: 'asc' }],
    select: { kind: true },
  })
  const withImages = {
    organizationId,
    layerClass: 'private' as const,
    layerVersionId: versionId,
    AND: [seen.devices],
  }
  const images = await db.device.findMany({ where: withImages, ...firstNames })
  const waiting = await readPromotion(db, { organizationId, vdiskId })
  const waits = waiting?.versionId === versionId && waiting.givenUpAt === null
  const isBooted = resolved?.production?.id === versionId
  return [
    { noun: 'running device', ...(seen.running ?? (await runningDevices(context, { versionId }, seen.devicesSql))) },
    {
      noun: 'boot menu',
      count: await db.bootMenu.count({ where: ofVersion }),
      names: menus.map(({ name }) => name),
    },
    {
      noun: 'private image',
      count: await db.device.count({ where: withImages }),
      names: images.map(({ name }) => `of ${name}`),
    },
    ...(holder === null ? [] : [{ noun: holder, count: 1, names: [`of ${row.vdisk.name}`] }]),
    ...(waits ? [{ noun: 'waiting promotion', count: 1, names: [`of ${row.vdisk.name}`] }] : []),
    ...(isBooted ? await bootersOf(db, { organizationId, vdiskId }, seen) : []),
    { noun: unfinishedJob, count: jobs.length, names: jobs.map(({ kind }) => kind) },
    ...(await layersAbove(db, { organizationId, vdiskId, versionId })),
  ]
}

/** Versions in maintenance: a device's writes, which nobody can read without the version below. */
async function layersAbove(
  db: DbOrTransaction,
  { organizationId, vdiskId, versionId }: { organizationId: string; vdiskId: string; versionId: string },
): Promise<Users[]> {
  const above = await db.vdiskVersion.findMany({
    where: { organizationId, vdiskId, parentVersionId: versionId, state: 'maintenance', sealedAt: null },
    select: { number: true },
  })
  return [{ noun: 'version in maintenance', count: above.length, names: above.map(({ number }) => String(number)) }]
}

/** The devices that boot the vDisk's production version. */
async function bootersOf(
  db: DbOrTransaction,
  ofVdisk: { organizationId: string; vdiskId: string },
  seen: HoldersSeen,
): Promise<Users[]> {
  const ofCollections = { ...ofVdisk, AND: [seen.collections] }
  const ofDevices = { ...ofVdisk, AND: [seen.devices] }
  const collections = await db.collection.findMany({ where: ofCollections, ...firstNames })
  const devices = await db.device.findMany({ where: ofDevices, ...firstNames })
  return [
    {
      noun: 'collection',
      count: await db.collection.count({ where: ofCollections }),
      names: collections.map(({ name }) => name),
    },
    {
      noun: 'device',
      count: await db.device.count({ where: ofDevices }),
      names: devices.map(({ name }) => name),
    },
  ]
}
