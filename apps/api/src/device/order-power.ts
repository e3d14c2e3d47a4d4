import type { z } from 'zod'
import { findBoot, waitOfRow } from '../boot/public.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { deviceStateOf } from '../rules/device/device-state.ts'
import type { bootAgainInput, bootAgainResult, powerOrderInput, powerOrderResult } from './schema.ts'

/** How long a power-on stays in the desired state: UPLINK.md. */
const powerOnValidMs = 60_000
const powerOnsPendingMax = 10

/**
 * Asks the site's edges to wake the device; they learn it within a second. Throws `not_found`; `conflict` for a
 * disabled device, a site without an edge, or too many orders at once.
 */
export async function bootAgain(
  context: ServiceContext,
  { deviceId, traceparent }: z.infer<typeof bootAgainInput>,
): Promise<z.infer<typeof bootAgainResult>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const requestedAt = clock()
  const expiresAt = new Date(requestedAt.getTime() + powerOnValidMs)
  return db.$transaction(async (transaction) => {
    const device = await transaction.device.findUnique({
      where: ownRow(actor, deviceId),
      select: {
        name: true,
        enabled: true,
        site: { select: { _count: { select: { edges: { where: { revokedAt: null } } } } } },
        _count: { select: { powerOns: { where: { expiresAt: { gt: requestedAt } } } } },
      },
    })
    if (!device) throw new AppError('not_found')
    if (!device.enabled) throw new AppError('conflict', { public: 'This device is disabled. Enable it first.' })
    if (device.site._count.edges === 0)
      throw new AppError('conflict', { public: 'This site has no edge that could wake the device.' })
    if (device._count.powerOns >= powerOnsPendingMax)
      throw new AppError('conflict', { public: 'This device is already being woken.' })
    const powerOn = await transaction.powerOn.create({
      data: {
        organizationId,
        deviceId,
        requestedByUserId: actor.userId,
        requestedAt,
        expiresAt,
        traceparent: traceparent ?? null,
      },
      select: { id: true },
    })
    await recordChange(context, {
      kind: 'device',
      id: deviceId,
      name: device.name,
      before: { powerOnId: null },
      after: { powerOnId: powerOn.id, expiresAt },
    })
    return { powerOnId: powerOn.id, expiresAt: expiresAt.toISOString() }
  })
}

/** How long a power order stays in the desired state: packages/proto/UPLINK.md. */
const powerOrderValidMs = 60_000
const powerOrdersPendingMax = 10

/**
 * Orders a device to switch off or restart, which it takes with its next report. Throws `not_found`; `conflict` for a
 * device that neither runs nor waits without its disk, according to its reports, for a site without an edge, or for too
 * many orders at once.
 */
export async function orderPower(
  context: ServiceContext,
  { deviceId, order, traceparent }: z.infer<typeof powerOrderInput>,
): Promise<z.infer<typeof powerOrderResult>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const requestedAt = clock()
  const expiresAt = new Date(requestedAt.getTime() + powerOrderValidMs)
  return db.$transaction(async (transaction) => {
    const device = await transaction.device.findUnique({
      where: ownRow(actor, deviceId),
      select: {
        name: true,
        lastBootId: true,
        site: { select: { _count: { select: { edges: { where: { revokedAt: null } } } } } },
        _count: { select: { powerOrders: { where: { expiresAt: { gt: requestedAt }, takenAt: null } } } },
      },
    })
    if (!device) throw new AppError('not_found')
    const lastBoot = device.lastBootId ? await findBoot({ db: transaction, actor }, device.lastBootId) : null
    // A device that has lost its disk still takes orders.
    const isReached =
      lastBoot &&
      (deviceStateOf(lastBoot, requestedAt).state === 'running' ||
        waitOfRow(lastBoot, requestedAt)?.reason === 'lost_disk')
    if (!isReached) throw new AppError('conflict', { public: 'According to its reports, this device is not running.' })
    if (device.site._count.edges === 0)
      throw new AppError('conflict', { public: 'This site has no edge that could deliver the order.' })
    if (device._count.powerOrders >= powerOrdersPendingMax)
      throw new AppError('conflict', { public: 'Too many orders are already waiting for this device.' })
    const powerOrder = await transaction.powerOrder.create({
      data: {
        organizationId,
        deviceId,
        order,
        requestedByUserId: actor.userId,
        requestedAt,
        expiresAt,
        traceparent: traceparent ?? null,
      },
      select: { id: true },
    })
    await recordChange(context, {
      kind: 'device',
      id: deviceId,
      name: device.name,
      before: { order: null },
      after: { order, powerOrderId: powerOrder.id, expiresAt },
    })
    return { powerOrderId: powerOrder.id, expiresAt: expiresAt.toISOString() }
  })
}
