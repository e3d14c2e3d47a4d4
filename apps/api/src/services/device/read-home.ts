import type { Prisma } from '@bootfarm/db'
import type { DeviceHome } from '../../domain/device-view.ts'
import type { ServiceContext } from '../service-context.ts'
import { activeStates } from '../store-job/ask-store.ts'

export const deviceHomeSelect = {
  ...{ id: true, homeEdgeId: true, nextHomeEdgeId: true },
  ...{ layerClass: true, layerEdgeId: true, layerBytes: true },
} satisfies Prisma.DeviceSelect
export type DeviceHomeRow = Prisma.DeviceGetPayload<{ select: typeof deviceHomeSelect }>

export async function readDeviceHome(
  context: ServiceContext,
  row: DeviceHomeRow,
): Promise<DeviceHome | null> {
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
  const job =
    next &&
    (await db.storeJob.findFirst({
      where: { organizationId, deviceId: row.id, kind: 'release_home', state: activeStates },
      select: { id: true },
    }))
  return {
    edge: {
      id: homeEdgeId,
      name: home?.name ?? 'an edge that was removed',
      isRemoved: !home || home.revokedAt !== null,
    },
    next: next ? { id: next.id, name: next.name, jobId: job?.id ?? null } : null,
    keeps: await readKept(context, row),
  }
}

/** As boots and inventories have said; what the edge has begun since, it alone knows. */
async function readKept(
  { db, actor: { organizationId } }: ServiceContext,
  { id, homeEdgeId, layerClass, layerEdgeId, layerBytes }: DeviceHomeRow,
): Promise<string | null> {
  const kept: string[] = []
  if (layerClass !== null && layerEdgeId === homeEdgeId)
    kept.push(`${layerBytes ?? 0n} bytes of its ${layerClass === 'private' ? 'own image' : 'write cache'}`)
  const written = await db.edgeVersion.findMany({
    where: {
      ...{ organizationId, edgeId: homeEdgeId ?? id, isLayer: true, state: 'present' },
      version: { sealedAt: null, vdisk: { maintenanceDeviceId: id } },
    },
    select: { ownBytes: true, version: { select: { number: true, vdisk: { select: { name: true } } } } },
  })
  for (const { ownBytes, version } of written)
    kept.push(`${ownBytes} bytes of version ${version.number} of ${version.vdisk.name}, which it writes`)
  return kept.length > 0 ? kept.join(' and ') : null
}
