import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { CaptureRow } from './capture-row.ts'

/** The settings of a device by which it writes a version in maintenance, and its own ones, which a capture restores. */

const select = {
  name: true,
  vdiskId: true,
  deviceType: true,
  bootMenuChoice: true,
  bootMenuId: true,
  homeEdgeId: true,
} as const

/** Lets the device boot the capture's vDisk, and write it at the capture's edge. Throws `conflict` if it is gone. */
export async function pointDevice(context: ServiceContext, row: CaptureRow): Promise<void> {
  if (row.formerDeviceType !== null) return
  const { db, clock, actor } = context
  const { deviceId, vdiskId, edgeId } = row
  const device = await db.device.findUnique({ where: ownRow(actor, deviceId), select })
  if (!device) throw new AppError('conflict', { public: 'The device was deleted.' })
  if (device.homeEdgeId !== null && device.homeEdgeId !== edgeId)
    throw new AppError('conflict', { public: `Another edge keeps the writes of ${device.name} by now.` })
  const home = device.homeEdgeId === null ? { homeEdgeId: edgeId, homeSince: clock() } : {}
  const after = { vdiskId, deviceType: 'maintenance' as const, bootMenuChoice: 'none' as const, bootMenuId: null }
  await db.device.update({
    where: ownRow(actor, deviceId),
    data: Object.assign(home, after),
    select: { id: true },
  })
  await db.diskCapture.update({
    where: ownRow(actor, row.id),
    data: {
      formerVdiskId: device.vdiskId,
      formerDeviceType: device.deviceType,
      formerMenuChoice: device.bootMenuChoice,
      formerMenuId: device.bootMenuId,
    },
    select: { id: true },
  })
  await recordChange(context, {
    kind: 'device',
    id: deviceId,
    name: device.name,
    before: { vdiskId: device.vdiskId, deviceType: device.deviceType, bootMenuChoice: device.bootMenuChoice },
    after: { vdiskId, deviceType: after.deviceType, bootMenuChoice: after.bootMenuChoice },
  })
}

/** Returns whether the device still has the settings of the capture. */
export async function isPointed({ db, actor }: ServiceContext, row: CaptureRow): Promise<boolean> {
  const device = await db.device.findUnique({ where: ownRow(actor, row.deviceId), select })
  return device?.vdiskId === row.vdiskId && device.deviceType === 'maintenance'
}

/** Restores the device's own settings, except where somebody has changed them meanwhile. */
export async function restoreDevice(context: ServiceContext, row: CaptureRow): Promise<void> {
  if (row.formerDeviceType === null) return
  const { db, actor } = context
  const { organizationId } = actor
  const where = ownRow(actor, row.deviceId)
  const device = await db.device.findUnique({ where, select })
  if (device && (await isPointed(context, row))) {
    const [vdiskId, bootMenuId] = await stillThere(context, row)
    const bootMenuChoice = row.formerMenuChoice === 'own' && bootMenuId === null ? 'collection' : row.formerMenuChoice
    const after = { vdiskId, deviceType: row.formerDeviceType, bootMenuChoice: bootMenuChoice ?? 'collection' }
    await db.device.update({ where, data: Object.assign({ bootMenuId }, after), select: { id: true } })
    await recordChange(context, {
      kind: 'device',
      id: row.deviceId,
      name: device.name,
      before: { vdiskId: device.vdiskId, deviceType: device.deviceType, bootMenuChoice: device.bootMenuChoice },
      after,
    })
  }
  await db.diskCapture.update({
    where: ownRow({ organizationId }, row.id),
    data: { formerVdiskId: null, formerDeviceType: null, formerMenuChoice: null, formerMenuId: null },
    select: { id: true },
  })
}

/** The device's former vDisk and menu; null for what was deleted since. */
async function stillThere(
  { db, actor }: ServiceContext,
  { id, formerVdiskId, formerMenuId }: CaptureRow,
): Promise<[string | null, string | null]> {
  const select = { id: true } as const
  const vdisk = await db.vdisk.findUnique({ where: ownRow(actor, formerVdiskId ?? id), select })
  const menu = await db.bootMenu.findUnique({ where: ownRow(actor, formerMenuId ?? id), select })
  return [vdisk?.id ?? null, menu?.id ?? null]
}
