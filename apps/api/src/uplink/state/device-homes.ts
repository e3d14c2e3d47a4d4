import { createHash } from 'node:crypto'
import { type DesiredState, edgeOnlineWithinMs, homeEdgesMax } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, DbOrTransaction } from '../../context/service-context.ts'

/** A device whose writes outlive its boots, and the versions on which they may be based. */
export interface WritingDevice {
  id: string
  homeEdgeId: string | null
  nextHomeEdgeId: string | null
  layerEdgeId: string | null
  versionIds: string[]
}

interface DeviceHomes {
  edges: NonNullable<DesiredState['homeEdges']>
  /** Index into `edges`; null: an edge beyond the number that this state can name. */
  indexOf: (deviceId: string) => number | null
}

/**
 * Returns the write owner of each device. It is chosen here, once, when a state first needs it; edges that ask at the
 * same time get the same answer.
 */
export async function readDeviceHomes(
  db: DbOrTransaction,
  edge: AuthenticatedEdge,
  { devices, now }: { devices: WritingDevice[]; now: Date },
): Promise<DeviceHomes> {
  const homeless = devices.filter(({ homeEdgeId }) => homeEdgeId === null)
  const chosen = homeless.length === 0 ? new Map() : await chooseHomes(db, edge, { devices: homeless, now })
  const toldOf = new Map<string, string>()
  for (const { id, homeEdgeId, nextHomeEdgeId } of devices) {
    const home = homeEdgeId ?? chosen.get(id)
    // A write owner that is to release the device must not start anything meanwhile.
    const told = home === edge.edgeId ? (nextHomeEdgeId ?? home) : home
    if (told) toldOf.set(id, told)
  }
  const ids = [...new Set(toldOf.values())].toSorted().slice(0, homeEdgesMax)
  const named = await db.edge.findMany({
    where: { organizationId: edge.organizationId, id: { in: ids } },
    select: { id: true, name: true },
  })
  const nameOf = new Map(named.map(({ id, name }) => [id, name]))
  const indexes = new Map(ids.map((id, index) => [id, index]))
  return {
    edges: ids.map((id) => ({ id, name: nameOf.get(id) ?? 'that was removed' })),
    indexOf: (deviceId) => indexes.get(toldOf.get(deviceId) ?? '') ?? null,
  }
}

/** If the states of two edges are made at the same time, the first one chooses for both. */
async function chooseHomes(
  db: DbOrTransaction,
  edge: AuthenticatedEdge,
  { devices, now }: { devices: WritingDevice[]; now: Date },
): Promise<Map<string, string>> {
  const { organizationId } = edge
  const ids = devices.map(({ id }) => id)
  const judge = await readJudge(db, edge, { devices, now })
  const rows = devices.map((device) => ({ id: device.id, edge_id: judge(device) }))
  await db.$queryRaw`select id from device where organization_id = ${organizationId}::uuid and id = any(${ids}::uuid[])
    order by id for no key update`
  await db.$executeRaw`
    update device set home_edge_id = row.edge_id, home_since = ${now} from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id uuid, edge_id uuid)
    where device.organization_id = ${organizationId}::uuid and device.id = row.id and device.home_edge_id is null`
  const kept = await db.device.findMany({
    where: { organizationId, id: { in: ids } },
    select: { id: true, homeEdgeId: true },
  })
  return new Map(kept.flatMap(({ id, homeEdgeId }) => (homeEdgeId ? [[id, homeEdgeId] as const] : [])))
}

/**
 * Returns the edge that already has writes of the device. Otherwise one of the site: first those that have a version
 * that it boots, then those that are online, then those that accept new boots; among equals, each gets its share.
 */
async function readJudge(
  db: DbOrTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { devices, now }: { devices: WritingDevice[]; now: Date },
): Promise<(device: WritingDevice) => string> {
  const edges = await db.edge.findMany({
    where: { organizationId, siteId, revokedAt: null },
    select: { id: true, weight: true, draining: true, heartbeatAt: true },
  })
  const stored = await db.edgeVersion.findMany({
    where: {
      organizationId,
      state: 'present',
      versionId: { in: [...new Set(devices.flatMap(({ versionIds }) => versionIds))] },
    },
    orderBy: [{ edgeId: 'asc' }],
    select: { versionId: true, edgeId: true, isLayer: true },
  })
  return ({ id, layerEdgeId, versionIds }) => {
    if (layerEdgeId) return layerEdgeId
    const own = stored.filter(({ versionId }) => versionIds.includes(versionId))
    const layer = own.find(({ isLayer }) => isLayer)
    if (layer) return layer.edgeId
    const rank = (edge: (typeof edges)[number]) => [
      own.some((version) => version.edgeId === edge.id) ? 0 : 1,
      edge.heartbeatAt && now.getTime() - edge.heartbeatAt.getTime() < edgeOnlineWithinMs ? 0 : 1,
      edge.draining ? 1 : 0,
      distance(edge, id),
    ]
    const [best] = edges.map((edge) => ({ id: edge.id, rank: rank(edge) })).toSorted((a, b) => compare(a.rank, b.rank))
    return best?.id ?? edgeId
  }
}

/** Lower in proportion to the edge's share of the weights: rendezvous hashing, as among edges (PEERS.md). */
function distance({ id, weight }: { id: string; weight: number }, deviceId: string): number {
  const digest = createHash('sha256').update(`${id} ${deviceId}`).digest()
  const part = (digest.readUInt32BE(0) + 1) / 2 ** 32
  return -Math.log(part) / Math.max(weight, 0.001)
}

function compare(a: number[], b: number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
