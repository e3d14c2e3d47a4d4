import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleCollections, visibleDevices, visibleVdisks } from '../access/visible.ts'
import { byName, nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import { type ResolvedVersions, resolveVersions } from '../rules/device/version-access.ts'
import {
  type VdiskDetail,
  type vdiskListInput,
  type vdiskPage,
  vdiskSort,
  type versionGetInput,
  type versionView,
} from './schema.ts'
import { seesEdgesOf, tallyDevices } from './tally-devices.ts'
import { readAtEdges, versionDetailOf, versionDetailSelect } from './version-detail.ts'
import { readResolved, versionChoicesSelect } from './version-facts.ts'
import { allowedSteps } from './version-steps.ts'

const collectionsShownMax = 200

function detailSelect(actor: Actor) {
  return {
    id: true,
    farmId: true,
    name: true,
    createdAt: true,
    note: true,
    revision: true,
    ...versionChoicesSelect,
    writeCache: true,
    writeCacheLimitBytes: true,
    writeCacheFull: true,
    store: { select: { id: true, name: true } },
    _count: { select: { devices: { where: visibleDevices(actor) } } },
    farm: { select: { name: true } },
    versions: { orderBy: { number: 'desc' }, select: versionDetailSelect },
    menuEntries: {
      orderBy: [{ menu: { name: 'asc' } }, { menuId: 'asc' }, { position: 'asc' }],
      select: { menu: { select: { id: true, name: true } }, version: { select: { number: true } } },
    },
  } satisfies Prisma.VdiskSelect
}

/** Throws `not_found`. */
export async function getVdisk({ db, clock, actor }: ServiceContext, vdiskId: string): Promise<VdiskDetail> {
  const row = await db.vdisk.findUnique({ where: ownRow(actor, vdiskId), select: detailSelect(actor) })
  if (!row) throw new AppError('not_found')
  const now = clock()
  const resolved = resolveVersions(row, row.versions, now)
  const allowed = allowedSteps(row, now)
  const tallies = await tallyDevices(db, { vdiskId, actor }, resolved)
  const { organizationId } = actor
  const atEdges = await readAtEdges(db, { organizationId, versionIds: row.versions.map(({ id }) => id) })
  const writer = await readWriter(db, actor, row.maintenanceDeviceId)
  return {
    id: row.id,
    farmId: row.farmId,
    farmName: row.farm.name,
    name: row.name,
    createdAt: row.createdAt.toISOString(),
    note: row.note,
    store: row.store,
    revision: row.revision,
    deviceCount: row._count.devices,
    versions: row.versions.map((version) =>
      versionDetailOf(version, { resolved, allowed, tallies, atEdges, seesEdge: seesEdgesOf(actor, row.farmId) }),
    ),
    writeCache: {
      class: row.writeCache,
      limitBytes: row.writeCacheLimitBytes === null ? null : Number(row.writeCacheLimitBytes),
      full: row.writeCacheFull,
    },
    defaultVersionId: resolved.default?.id ?? null,
    overrideVersionId: resolved.override?.id ?? null,
    pending: resolved.pending && {
      versionId: resolved.pending.version.id,
      releaseAt: resolved.pending.at.toISOString(),
    },
    maintenance: resolved.maintenance && { versionId: resolved.maintenance.id, device: writer },
    ...(await readCollections(db, { actor, vdiskId })),
    menus: menusOf(row.menuEntries),
  }
}

/** The first collections that boot it: thousands may, and their own list has all. */
async function readCollections(
  db: DbOrTransaction,
  { actor, vdiskId }: { actor: Actor; vdiskId: string },
): Promise<Pick<VdiskDetail, 'collections' | 'collectionCount'>> {
  const where = { organizationId: actor.organizationId, vdiskId, AND: [visibleCollections(actor)] }
  const collections = await db.collection.findMany({
    where,
    orderBy: byName,
    take: collectionsShownMax,
    select: { id: true, name: true, site: { select: { name: true } } },
  })
  const ids = collections.map(({ id }) => id)
  const counts = await db.device.groupBy({
    by: ['collectionId'],
    where: { organizationId: actor.organizationId, collectionId: { in: ids }, AND: [visibleDevices(actor)] },
    _count: true,
  })
  const countOf = new Map(counts.map(({ collectionId, _count }) => [collectionId, _count]))
  return {
    collectionCount:
      collections.length < collectionsShownMax ? collections.length : await db.collection.count({ where }),
    collections: collections.map(({ id, name, site }) => ({
      id,
      name,
      siteName: site.name,
      deviceCount: countOf.get(id) ?? 0,
    })),
  }
}

/** Throws `not_found`. */
export async function getVersion(
  context: ServiceContext,
  { versionId }: z.output<typeof versionGetInput>,
): Promise<z.infer<typeof versionView>> {
  const { db, actor } = context
  const row = await db.vdiskVersion.findUnique({ where: ownRow(actor, versionId), select: { vdiskId: true } })
  if (!row) throw new AppError('not_found')
  // What is allowed and what it is depends on the other versions.
  const vdisk = await getVdisk(context, row.vdiskId)
  const version = vdisk.versions.find(({ id }) => id === versionId)
  if (!version) throw new AppError('not_found')
  return { ...version, vdiskId: vdisk.id, vdiskName: vdisk.name }
}

/** Null also where the actor does not see the device that writes. */
async function readWriter(
  db: DbOrTransaction,
  actor: Actor,
  id: string | null,
): Promise<{ id: string; name: string } | null> {
  if (id === null) return null
  return db.device.findFirst({
    where: { organizationId: actor.organizationId, id, AND: [visibleDevices(actor)] },
    select: { id: true, name: true },
  })
}

export async function listVdisks(
  { db, clock, actor }: ServiceContext,
  input: z.output<typeof vdiskListInput>,
): Promise<z.infer<typeof vdiskPage>> {
  const order = listOrder(vdiskSort, input)
  const rows = await db.vdisk.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...nameContains(input.search),
      AND: [visibleVdisks(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: {
      id: true,
      farmId: true,
      name: true,
      createdAt: true,
      farm: { select: { name: true } },
      _count: { select: { versions: true } },
      versions: {
        orderBy: { number: 'desc' },
        take: 1,
        select: { id: true, number: true, sizeBytes: true, createdAt: true },
      },
    },
  })
  const resolved = await readResolved(
    db,
    { organizationId: actor.organizationId, vdiskIds: rows.map(({ id }) => id) },
    clock(),
  )
  return order.page(rows, ({ _count, farm, versions: [newest], ...row }) => ({
    ...row,
    farmName: farm.name,
    createdAt: row.createdAt.toISOString(),
    versionCount: _count.versions,
    newestVersion: newest
      ? { ...newest, sizeBytes: Number(newest.sizeBytes), createdAt: newest.createdAt.toISOString() }
      : null,
    bootedVersion: bootedOf(resolved.get(row.id)),
  }))
}

function bootedOf(resolved: ResolvedVersions | undefined): { id: string; number: number } | null {
  const version = resolved?.production
  return version ? { id: version.id, number: version.number } : null
}

interface MenuEntry {
  menu: { id: string; name: string }
  version: { number: number } | null
}

/** Each menu once, with the versions that it starts. */
function menusOf(entries: MenuEntry[]): VdiskDetail['menus'] {
  const menus = new Map<string, VdiskDetail['menus'][number]>()
  for (const { menu, version } of entries) {
    const known = menus.get(menu.id) ?? { ...menu, versionNumbers: [] }
    menus.set(menu.id, { ...known, versionNumbers: [...known.versionNumbers, version?.number ?? null] })
  }
  return [...menus.values()]
}
