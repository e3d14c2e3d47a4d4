import type { DeviceDetail } from '../../domain/device-view.ts'
import { AppError } from '../../errors/app-error.ts'
import type { ServiceContext } from '../service-context.ts'
import { deviceSummaryOf, deviceSummarySelect } from './list-devices.ts'

/** Throws `not_found`. */
export async function getDevice(
  { db, clock, actor }: ServiceContext,
  deviceId: string,
): Promise<DeviceDetail> {
  const row = await db.device.findUnique({
    where: { organizationId_id: { organizationId: actor.organizationId, id: deviceId } },
    select: {
      ...deviceSummarySelect,
      createdAt: true,
      collection: {
        select: {
          name: true,
          vdisk: {
            select: {
              id: true,
              name: true,
              versions: { orderBy: { number: 'desc' }, take: 1, select: { number: true } },
            },
          },
        },
      },
      powerOns: {
        where: { expiresAt: { gt: clock() } },
        orderBy: { requestedAt: 'desc' },
        take: 1,
        select: { id: true, requestedAt: true, expiresAt: true },
      },
    },
  })
  if (!row) throw new AppError('not_found')
  const { vdisk } = row.collection
  const version = vdisk?.versions[0]
  const powerOn = row.powerOns[0]
  return {
    ...deviceSummaryOf(row),
    createdAt: row.createdAt.toISOString(),
    vdisk: vdisk && version ? { id: vdisk.id, name: vdisk.name, versionNumber: version.number } : null,
    powerOn: powerOn
      ? {
          id: powerOn.id,
          requestedAt: powerOn.requestedAt.toISOString(),
          expiresAt: powerOn.expiresAt.toISOString(),
        }
      : null,
  }
}
