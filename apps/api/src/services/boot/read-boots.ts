import type { DbTransaction, Prisma } from '@bootfarm/db'
import type { Actor } from '../../domain/actor.ts'

/** Reads boots with what their rows name: partitioned tables have no relations. */

/** Also inside a transaction. */
export interface ReadContext {
  db: DbTransaction
  actor: Pick<Actor, 'organizationId'>
}

const bootSelect = {
  id: true,
  receivedOn: true,
  deviceId: true,
  mac: true,
  siteId: true,
  edgeId: true,
  revision: true,
  startedAt: true,
  receivedAt: true,
  updatedAt: true,
  outcome: true,
  failedPhase: true,
  failedCause: true,
  failedText: true,
  lastPhase: true,
  totalUs: true,
  bytesOut: true,
  retries: true,
  simulated: true,
  generated: true,
  vdiskId: true,
  versionId: true,
  menuEntry: true,
  phases: true,
  writeCacheUsedBytes: true,
  writeCacheSizeBytes: true,
} satisfies Prisma.BootSelect
type PlainBoot = Prisma.BootGetPayload<{ select: typeof bootSelect }>

/** A boot's summary with the names of its site, edge and device as they are now. */
export type BootRow = PlainBoot & Named

interface Named {
  /** Null where it is gone, or never was. */
  device: { name: string; lastBootId: string | null } | null
  site: { name: string }
  edge: { name: string; heartbeatAt: Date | null; revokedAt: Date | null }
  /** The last power order that the device took in this boot. */
  takenPowerOrders: { id: string; order: 'power_off' | 'restart'; takenAt: Date | null }[]
}

/** Null for a boot that there is not, or whose day is past the summaries' retention. */
export async function findBoot(context: ReadContext, bootId: string): Promise<BootRow | null> {
  const boots = await readBootsById(context, [bootId])
  return boots.get(bootId) ?? null
}

/** @param visible further conditions, such as what the actor may see */
export async function readBootsById(
  context: ReadContext,
  ids: string[],
  visible: Prisma.BootWhereInput = {},
): Promise<Map<string, BootRow>> {
  const boots = await nameBoots(context, await readPlainBoots(context, ids, visible))
  return new Map(boots.map((boot) => [boot.id, boot]))
}

export async function readPlainBoots(
  { db, actor }: ReadContext,
  ids: string[],
  visible: Prisma.BootWhereInput = {},
): Promise<PlainBoot[]> {
  const { organizationId } = actor
  if (ids.length === 0) return []
  const keys = await db.bootKey.findMany({
    where: { organizationId, bootId: { in: ids } },
    select: { bootId: true, receivedOn: true },
  })
  if (keys.length === 0) return []
  return db.boot.findMany({
    where: {
      organizationId,
      id: { in: keys.map(({ bootId }) => bootId) },
      receivedOn: { in: daysOf(keys) },
      AND: visible,
    },
    select: bootSelect,
  })
}

/** Newest first. The caller names the days to look into: a query without any would look into all partitions. */
export async function findBoots(
  context: ReadContext,
  { where, days, limit }: { where: Prisma.BootWhereInput; days: Date[]; limit: number },
): Promise<PlainBoot[]> {
  return context.db.boot.findMany({
    where: { organizationId: context.actor.organizationId, receivedOn: { in: days }, AND: where },
    orderBy: [{ startedAt: 'desc' }, { id: 'desc' }],
    take: limit,
    select: bootSelect,
  })
}

export async function nameBoots({ db, actor }: ReadContext, rows: PlainBoot[]): Promise<BootRow[]> {
  const { organizationId } = actor
  if (rows.length === 0) return []
  const ofIds = (ids: (string | null)[]) => ({
    organizationId,
    id: { in: [...new Set(ids.filter((id) => id !== null))] },
  })
  const sites = await db.site.findMany({
    where: ofIds(rows.map(({ siteId }) => siteId)),
    select: { id: true, name: true },
  })
  const edges = await db.edge.findMany({
    where: ofIds(rows.map(({ edgeId }) => edgeId)),
    select: { id: true, name: true, heartbeatAt: true, revokedAt: true },
  })
  const devices = await db.device.findMany({
    where: ofIds(rows.map(({ deviceId }) => deviceId)),
    select: { id: true, name: true, lastBootId: true },
  })
  const orders = await db.powerOrder.findMany({
    where: { organizationId, takenBootId: { in: rows.map(({ id }) => id) } },
    orderBy: { takenAt: 'asc' },
    select: { id: true, order: true, takenAt: true, takenBootId: true },
  })
  const siteById = new Map(sites.map((site) => [site.id, site]))
  const edgeById = new Map(edges.map((edge) => [edge.id, edge]))
  const deviceById = new Map(devices.map((device) => [device.id, device]))
  const lastOrder = new Map(orders.map((order) => [order.takenBootId, order]))
  return rows.map((row) => {
    const order = lastOrder.get(row.id)
    return {
      ...row,
      site: siteById.get(row.siteId) ?? { name: goneName },
      edge: edgeById.get(row.edgeId) ?? { name: goneName, heartbeatAt: null, revokedAt: null },
      device: deviceById.get(row.deviceId ?? '') ?? null,
      takenPowerOrders: order ? [order] : [],
    }
  })
}

const goneName = '(removed)'

/** Each once. */
export function daysOf(rows: { receivedOn: Date }[]): Date[] {
  return [...new Set(rows.map(({ receivedOn }) => receivedOn.getTime()))].map((time) => new Date(time))
}
