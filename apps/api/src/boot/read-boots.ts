import { type DbTransaction, Prisma } from '@bootfarm/db'
import type { Actor } from '../rules/actor.ts'
import type { ReportedWait } from '../rules/device/device-wait.ts'
import { reportedWaitOf, type WaitJson, waitsJson } from './waits.ts'

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
  durationUs: true,
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
  writeCacheHeld: true,
  silentSince: true,
  lost: true,
  storage: true,
  processors: true,
  memoryMib: true,
  networkCard: true,
  hardwareModel: true,
} satisfies Prisma.BootSelect
type PlainBoot = Prisma.BootGetPayload<{ select: typeof bootSelect }>

/** A boot's summary with the names of its site, edge and device as they are now. */
export type BootRow = PlainBoot & Named

interface Named {
  /** Null where it is gone, or never was. */
  device: { name: string; lastBootId: string | null } | null
  site: { name: string }
  edge: { name: string; heartbeatAt: Date | null; revokedAt: Date | null }
  takenPowerOrders: { id: string; order: 'power_off' | 'restart'; takenAt: Date | null }[]
  wait: ReportedWait | null
}

/** Null for a boot that there is not, or whose day is past the summaries' retention. */
export async function findBoot(context: ReadContext, bootId: string): Promise<BootRow | null> {
  const boots = await readBootsById(context, [bootId])
  return boots.get(bootId) ?? null
}

/** @param visible further conditions, such as the part that the actor may see */
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

/** By start. The caller names the days to look into: a query without any would look into all partitions. */
export async function findBoots(
  context: ReadContext,
  {
    where,
    oldestFirst,
    days,
    limit,
  }: { where: Prisma.BootWhereInput; oldestFirst: boolean; days: Date[]; limit: number },
): Promise<PlainBoot[]> {
  const direction = oldestFirst ? 'asc' : 'desc'
  const orderBy = [{ startedAt: direction }, { id: direction }] as const
  return findOrderedBoots(context, { where, days, orderBy: [...orderBy], limit })
}

interface OrderedBoots {
  where: Prisma.BootWhereInput
  days: Date[]
  orderBy: Prisma.BootOrderByWithRelationInput[]
  limit: number
}

/** In any order; the days are named as above. */
export async function findOrderedBoots(
  { db, actor }: ReadContext,
  { where, days, orderBy, limit }: OrderedBoots,
): Promise<PlainBoot[]> {
  return db.boot.findMany({
    where: { organizationId: actor.organizationId, receivedOn: { in: days }, AND: where },
    orderBy,
    take: limit,
    select: bootSelect,
  })
}

/** Reads the names that boots refer to in one statement: each would be a separate round trip. */
export async function nameBoots({ db, actor }: ReadContext, rows: PlainBoot[]): Promise<BootRow[]> {
  if (rows.length === 0) return []
  const organizationId = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  const among = (ids: (string | null)[]) => [...new Set(ids.filter((id) => id !== null))]
  const found = await db.$queryRaw<NamedRow[]>`
    select 'site' as kind, id, name, null::uuid as other_id, null::timestamptz as at, null::timestamptz as ended_at, null::jsonb as value from site
      where ${organizationId} and id = any(${among(rows.map(({ siteId }) => siteId))}::uuid[])
    union all select 'edge', id, name, null, heartbeat_at, revoked_at, null from edge
      where ${organizationId} and id = any(${among(rows.map(({ edgeId }) => edgeId))}::uuid[])
    union all select 'device', id, name, last_boot_id, null, null, null from device
      where ${organizationId} and id = any(${among(rows.map(({ deviceId }) => deviceId))}::uuid[])
    union all select 'wait', boot_id, '', null, null, null, ${waitsJson} from boot_wait
      where ${organizationId} and boot_id = any(${rows.map(({ id }) => id)}::uuid[])
    union all (select distinct on (taken_boot_id) 'order', taken_boot_id, "order"::text, id, taken_at, null, null from power_order
      where ${organizationId} and taken_boot_id = any(${rows.map(({ id }) => id)}::uuid[])
      order by taken_boot_id, taken_at desc)`
  const named = new Map(found.map((row) => [`${row.kind} ${row.id}`, row]))
  return rows.map((row) => {
    const edge = named.get(`edge ${row.edgeId}`)
    const device = named.get(`device ${row.deviceId}`)
    const order = named.get(`order ${row.id}`)
    const wait = named.get(`wait ${row.id}`)?.value
    return {
      ...row,
      site: { name: named.get(`site ${row.siteId}`)?.name ?? goneName },
      edge: {
        name: edge?.name ?? goneName,
        heartbeatAt: edge?.at ?? null,
        revokedAt: edge?.ended_at ?? null,
      },
      device: device ? { name: device.name, lastBootId: device.other_id } : null,
      takenPowerOrders: order?.other_id
        ? [{ id: order.other_id, order: order.name as PowerOrderKind, takenAt: order.at }]
        : [],
      wait: wait ? reportedWaitOf(wait) : null,
    }
  })
}

/** For a power order, `name` is the order and `other_id` its id; for a device, `other_id` is its last boot. */
interface NamedRow {
  kind: 'site' | 'edge' | 'device' | 'order'
  id: string
  name: string
  other_id: string | null
  at: Date | null
  ended_at: Date | null
  /** Set for a wait. */
  value: WaitJson | null
}
type PowerOrderKind = BootRow['takenPowerOrders'][number]['order']

const goneName = '(removed)'

/** Each once. */
export function daysOf(rows: { receivedOn: Date }[]): Date[] {
  return [...new Set(rows.map(({ receivedOn }) => receivedOn.getTime()))].map((time) => new Date(time))
}
