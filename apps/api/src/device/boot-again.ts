import type { z } from 'zod'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { bootAgainResult } from './schema.ts'

/** How long a power-on stays in the desired state: UPLINK.md. */
const powerOnValidMs = 60_000
const powerOnsPendingMax = 10

/**
 * Asks the site's edges to wake the device; they hear of it within a second.
 * Throws `not_found`; `conflict` for a disabled device, a site without an edge, or too many wishes at once.
 */
export async function bootAgain(context: ServiceContext, deviceId: string): Promise<z.infer<typeof bootAgainResult>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const requestedAt = clock()
  const expiresAt = new Date(requestedAt.getTime() + powerOnValidMs)
  return db.$transaction(async (transaction) => {
    const device = await transaction.device.findUnique({
      where: ownRow({ organizationId }, deviceId),
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
      data: { organizationId, deviceId, requestedByUserId: actor.userId, requestedAt, expiresAt },
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
