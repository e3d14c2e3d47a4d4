import type { DeviceDetail } from '../../domain/device-view.ts'
import { AppError } from '../../errors/app-error.ts'
import { deviceMenuOf, deviceMenuSelect } from '../boot-menu/menu-rows.ts'
import type { ServiceContext } from '../service-context.ts'
import { deviceSummaryOf, deviceSummarySelect, readLastBoots } from './device-rows.ts'

/** Throws `not_found`. */
export async function getDevice(context: ServiceContext, deviceId: string): Promise<DeviceDetail> {
  const { db, clock, actor } = context
  const row = await db.device.findUnique({
    where: { organizationId_id: { organizationId: actor.organizationId, id: deviceId } },
    select: {
      ...deviceSummarySelect(clock()),
      createdAt: true,
      bootMenuChoice: true,
      bootMenu: deviceMenuSelect.bootMenu,
      bootProgramSet: true,
      collection: {
        select: {
          ...deviceSummarySelect(clock()).collection.select,
          ...deviceMenuSelect.collection.select,
          bootProgramSet: true,
        },
      },
      site: { select: { name: true, bootProgramSet: true } },
      powerOns: {
        where: { expiresAt: { gt: clock() } },
        orderBy: { requestedAt: 'desc' },
        take: 1,
        select: { id: true, requestedAt: true, expiresAt: true },
      },
    },
  })
  if (!row) throw new AppError('not_found')
  const powerOn = row.powerOns[0]
  return {
    ...deviceSummaryOf(row, { lastBoots: await readLastBoots(context, [row]), now: clock() }),
    bootProgramSets: {
      device: row.bootProgramSet,
      collection: row.collection.bootProgramSet,
      site: row.site.bootProgramSet,
    },
    bootMenu: deviceMenuOf(row),
    createdAt: row.createdAt.toISOString(),
    powerOn: powerOn
      ? {
          id: powerOn.id,
          requestedAt: powerOn.requestedAt.toISOString(),
          expiresAt: powerOn.expiresAt.toISOString(),
        }
      : null,
  }
}
