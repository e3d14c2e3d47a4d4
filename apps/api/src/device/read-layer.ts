import type { Prisma } from '@bootfarm/db'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { activeStates } from '../store/public.ts'
import { readResolved } from '../vdisk/public.ts'
import type { DeviceLayer } from './schema.ts'

export const deviceLayerSelect = {
  id: true,
  layerClass: true,
  layerEdgeId: true,
  layerVersionId: true,
  layerBytes: true,
} satisfies Prisma.DeviceSelect
type DeviceLayerRow = Prisma.DeviceGetPayload<{ select: typeof deviceLayerSelect }>

/**
 * Returns what an edge keeps of a device's writes, according to the device's boots; null: nothing, or its edge is gone.
 */
export async function readDeviceLayer(
  { db, clock, actor: { organizationId } }: ServiceContext,
  row: DeviceLayerRow,
): Promise<DeviceLayer | null> {
  const { layerClass, layerEdgeId, layerVersionId } = row
  if ((layerClass !== 'edge_persistent' && layerClass !== 'private') || layerEdgeId === null) return null
  const edge = await db.edge.findUnique({
    where: ownRow({ organizationId }, layerEdgeId),
    select: { id: true, name: true },
  })
  if (!edge) return null
  const version = layerVersionId
    ? await db.vdiskVersion.findUnique({
        where: ownRow({ organizationId }, layerVersionId),
        select: { id: true, number: true, vdiskId: true, vdisk: { select: { name: true } } },
      })
    : null
  const now = clock()
  const released = {
    state: 'released' as const,
    sealedAt: { not: null },
    OR: [{ releasedAt: null }, { releasedAt: { lte: now } }],
  }
  const vdiskIds = version ? [version.vdiskId] : []
  const resolved = (await readResolved(db, { organizationId, vdiskIds }, now)).get(version?.vdiskId ?? '')
  const drop = await db.storeJob.findFirst({
    where: { organizationId, deviceId: row.id, kind: 'drop_layer', layerClass, state: activeStates },
    select: { id: true },
  })
  return {
    class: layerClass,
    edge,
    usedBytes: Number(row.layerBytes ?? 0n),
    dropJobId: drop?.id ?? null,
    version: version && {
      id: version.id,
      number: version.number,
      vdiskId: version.vdiskId,
      vdiskName: version.vdisk.name,
    },
    currentNumber: resolved?.production?.number ?? null,
    releasesBehind:
      version &&
      (await db.vdiskVersion.count({
        where: { organizationId, vdiskId: version.vdiskId, number: { gt: version.number }, ...released },
      })),
  }
}
