import { Prisma } from '@bootfarm/db'
import {
  type exportFormats,
  type layerClasses,
  type storeJobKinds,
  storeJobsMax,
  unsaidJobKinds,
} from '@bootfarm/proto/uplink'
import { findPlaces } from '../access/find-place.ts'
import { type DbOrTransaction, lockRow, type ServiceContext } from '../context/service-context.ts'
import { heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'

export interface StoreOrder {
  edgeId: string
  kind: (typeof storeJobKinds)[number]
  vdiskId?: string | null
  versionId?: string | null
  intoVersionId?: string | null
  sourcePath?: string | null
  uploadId?: string | null
  sourceUrl?: string | null
  sourceSizeBytes?: bigint | null
  sourceSha256?: string | null
  /** For a seal or an import; null: taken from the disk. */
  bootFiles?: 'parent' | 'none' | null
  /** For an import: drivers that are added to the initramfs that it makes. */
  modules?: string[]
  /** For an export. */
  exportFormat?: (typeof exportFormats)[number] | null
  /** For a pack or a fetch. */
  differenceId?: string | null
  /** Of a difference; for an import: the version whose kernel and initramfs it takes. */
  baseVersionId?: string | null
  toControlPlane?: boolean
  fromControlPlane?: boolean
  sourceEdgeIds?: string[]
  differenceSizeBytes?: bigint | null
  differenceListSha256?: string | null
  rateBytesPerSecond?: bigint | null
  deviceId?: string | null
  layerClass?: (typeof layerClasses)[number] | null
}

interface OrderedEdge {
  name: string
  revoked_at: Date | null
  heartbeat: unknown
  agent_version: string | null
}

export const activeStates = { in: ['queued' as const, 'running' as const] }

/**
 * Gives work to an edge's store, as part of its desired state until its end is known. Throws `not_found` for an edge
 * that there is not; `conflict` for one that was revoked, does no work of this kind, or has as much to do already as a
 * state holds.
 */
export async function askStore(context: ServiceContext, order: StoreOrder): Promise<string> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  // Locked, so that two at once do not pass the limit.
  const edge = await lockRow<OrderedEdge>(db, 'edge', {
    organizationId,
    id: order.edgeId,
    strength: 'no key update',
    columns: Prisma.sql`name, revoked_at, heartbeat, agent_version`,
  })
  const place = (await findPlaces(db, 'edge', { organizationId, ids: [order.edgeId] })).get(order.edgeId)
  if (!edge || !place) throw new AppError('not_found', { public: 'There is no such edge.' })
  const problem = whyNoWork(
    {
      name: edge.name,
      revokedAt: edge.revoked_at,
      heartbeat: edge.heartbeat,
      agentVersion: edge.agent_version,
    },
    order.kind,
  )
  if (problem) throw new AppError('conflict', { public: problem })
  const active = await db.storeJob.count({
    where: { organizationId, edgeId: order.edgeId, state: activeStates },
  })
  if (active >= storeJobsMax)
    throw new AppError('conflict', {
      public: `${edge.name} already has ${active} jobs. Wait until some are done, or cancel some.`,
    })
  const { id } = await db.storeJob.create({
    data: {
      organizationId,
      ...order,
      askedAt: clock(),
      askedByUserId: actor.userId,
      askedByName: actor.userName,
    },
    select: { id: true },
  })
  const { edgeId: _edgeId, kind, sourceUrl, ...what } = order
  await recordChange(context, {
    kind: 'store_job',
    id,
    name: `${kind} on ${edge.name}`,
    place,
    before: null,
    after: { kind, edge: edge.name, ...what, ...(sourceUrl ? { sourceUrl: shownUrl(sourceUrl) } : {}) },
  })
  return id
}

/** Without its query, which may have a signature in it that lets others read the file. */
export function shownUrl(url: string): string {
  return url.replace(/[?#].*$/s, '')
}

interface WorkingEdge {
  name: string
  revokedAt: Date | null
  heartbeat: unknown
  agentVersion: string | null
}

/** Why the edge does no work of this kind; null: it does. */
export function whyNoWork(edge: WorkingEdge, kind: StoreOrder['kind']): string | null {
  const { name, revokedAt, agentVersion } = edge
  if (revokedAt) return `${name} was revoked and accepts no jobs.`
  const heartbeat = heartbeatOf(edge)
  const kinds: readonly string[] = heartbeat?.storeJobKinds ?? unsaidJobKinds
  // An edge that was never heard reports it when it comes.
  if (!heartbeat || kinds.includes(kind)) return null
  return `The edge ${name} (release ${agentVersion ?? 'unknown'}) does not support ${kind}. Update it.`
}

/** Returns the online edges whose stores have the complete version, by name. */
export function edgesHolding(
  db: DbOrTransaction,
  { organizationId, versionId }: { organizationId: string; versionId: string },
  { isLayer }: { isLayer: boolean },
): Promise<{ edgeId: string }[]> {
  return db.edgeVersion.findMany({
    where: {
      organizationId,
      versionId,
      isLayer,
      state: 'present',
      edge: { revokedAt: null, site: { deletionId: null } },
    },
    orderBy: [{ edge: { name: 'asc' } }, { edgeId: 'asc' }],
    select: { edgeId: true },
  })
}
