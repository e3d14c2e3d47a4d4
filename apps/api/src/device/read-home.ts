import type { Prisma } from '@bootfarm/db'
import { byName } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import type { DeviceHome } from './schema.ts'

const siteEdgesMax = 100

export const deviceHomeSelect = {
  id: true,
  siteId: true,
  homeEdgeId: true,
  nextHomeEdgeId: true,
  homeSince: true,
  layerClass: true,
  layerEdgeId: true,
  layerBytes: true,
} satisfies Prisma.DeviceSelect
type DeviceHomeRow = Prisma.DeviceGetPayload<{ select: typeof deviceHomeSelect }>

export async function readDeviceHome(context: ServiceContext, row: DeviceHomeRow): Promise<DeviceHome | null> {
  const { homeEdgeId, nextHomeEdgeId } = row
  if (homeEdgeId === null) return null
  const { db, actor } = context
  const { organizationId } = actor
  const edges = await db.edge.findMany({
    where: { organizationId, id: { in: [homeEdgeId, nextHomeEdgeId ?? homeEdgeId] } },
    select: { id: true, name: true, revokedAt: true },
  })
  const home = edges.find(({ id }) => id === homeEdgeId)
  const next = edges.find(({ id }) => id === nextHomeEdgeId)
  const asked = await readAsked(context, row)
  const isActive = asked?.state === 'queued' || asked?.state === 'running'
  return {
    edge: {
      id: homeEdgeId,
      name: home?.name ?? 'a removed edge',
      isRemoved: !home || home.revokedAt !== null,
    },
    next: next ? { id: next.id, name: next.name, jobId: isActive ? (asked?.jobId ?? null) : null } : null,
    since: row.homeSince?.toISOString() ?? null,
    asked,
    keeps: await readKept(context, row),
  }
}

/**
 * The last release job of this write owner, as long as it is the write owner: its result is shown until the next one.
 */
async function readAsked(
  { db, actor: { organizationId } }: ServiceContext,
  { id, homeEdgeId, homeSince }: DeviceHomeRow,
): Promise<DeviceHome['asked']> {
  const job = await db.storeJob.findFirst({
    where: { organizationId, deviceId: id, kind: 'release_home' },
    orderBy: [{ askedAt: 'desc' }, { id: 'desc' }],
    select: {
      id: true,
      edgeId: true,
      state: true,
      message: true,
      askedByName: true,
      askedAt: true,
      endedAt: true,
    },
  })
  if (!job || job.state === 'done' || job.edgeId !== homeEdgeId) return null
  if (homeSince && job.askedAt < homeSince) return null
  return {
    jobId: job.id,
    state: job.state,
    askedBy: job.askedByName,
    askedAt: job.askedAt.toISOString(),
    endedAt: job.endedAt?.toISOString() ?? null,
    untrusted: { message: job.message },
  }
}

export function readSiteEdges(
  { db, actor: { organizationId } }: ServiceContext,
  siteId: string,
): Promise<{ id: string; name: string }[]> {
  return db.edge.findMany({
    where: { organizationId, siteId, revokedAt: null },
    orderBy: byName,
    take: siteEdgesMax,
    select: { id: true, name: true },
  })
}

/** According to boots and inventories; only the edge knows what it has started since. */
async function readKept(
  { db, actor: { organizationId } }: ServiceContext,
  { id, homeEdgeId, layerClass, layerEdgeId, layerBytes }: DeviceHomeRow,
): Promise<string | null> {
  const kept: string[] = []
  if (layerClass !== null && layerEdgeId === homeEdgeId)
    kept.push(`${layerBytes ?? 0n} bytes of its ${layerClass === 'private' ? 'private image' : 'write cache'}`)
  const written = await db.edgeVersion.findMany({
    where: {
      organizationId,
      edgeId: homeEdgeId ?? id,
      isLayer: true,
      state: 'present',
      version: { sealedAt: null, vdisk: { maintenanceDeviceId: id } },
    },
    select: { ownBytes: true, version: { select: { number: true, vdisk: { select: { name: true } } } } },
  })
  for (const { ownBytes, version } of written)
    kept.push(`${ownBytes} bytes of version ${version.number} of ${version.vdisk.name}, which it writes`)
  return kept.length > 0 ? kept.join(' and ') : null
}
