import type { z } from 'zod'
import { findBoot } from '../boot/public.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { deviceStateOf } from '../rules/device/device-state.ts'
import { askStore } from '../store/public.ts'
import { deviceLayerSelect, readDeviceLayer } from './read-layer.ts'
import type { dropWritesInput, dropWritesResult } from './schema.ts'

/**
 * Has the edge that keeps it remove what a device has written: its persistent write cache, or its own image. Throws
 * `not_found`; `conflict` where nothing of that class is kept, the device runs, or it is being dropped already.
 */
export async function dropWrites(
  context: ServiceContext,
  { deviceId, class: wanted }: z.output<typeof dropWritesInput>,
): Promise<z.infer<typeof dropWritesResult>> {
  const { db, clock, actor } = context
  const device = await db.device.findUnique({
    where: ownRow(actor, deviceId),
    select: { ...deviceLayerSelect, name: true, lastBootId: true },
  })
  if (!device) throw new AppError('not_found')
  const layer = await readDeviceLayer(context, device)
  if (layer?.class !== wanted)
    throw new AppError('conflict', { public: 'No edge stores writes of this kind for the device.' })
  if (layer.dropJobId)
    throw new AppError('conflict', { public: `${layer.edge.name} has already been asked to delete them.` })
  const lastBoot = device.lastBootId ? await findBoot({ db, actor }, device.lastBootId) : null
  if (lastBoot && deviceStateOf(lastBoot, clock()).state === 'running')
    throw new AppError('conflict', {
      public: 'The device is using these writes. Shut the device down and try again after half a minute.',
    })
  const jobId = await askStore(context, {
    edgeId: layer.edge.id,
    kind: 'drop_layer',
    deviceId,
    layerClass: wanted,
    vdiskId: layer.version?.vdiskId ?? null,
    versionId: layer.version?.id ?? null,
  })
  await recordChange(context, {
    kind: 'device',
    id: deviceId,
    name: device.name,
    before: { writes: wanted, usedBytes: layer.usedBytes },
    after: { writes: null, usedBytes: 0 },
  })
  return { jobId }
}
