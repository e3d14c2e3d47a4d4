import { parseTraceparent, type TraceContext } from '../../rules/tracer.ts'
import type { BootRow, ReadContext } from '../read-boots.ts'

/** A device that was ordered to start shows its first packet within this time. */
const orderedBeforeMs = 10 * 60_000
/** The clocks of control plane and edge differ by less. */
const clocksDifferMs = 10_000

/**
 * The span of the caller that started this boot: by the schedule's run that it belongs to, or by the newest order for
 * its device shortly before it; null if nobody named one.
 */
export async function findCausingSpan(
  { db, actor }: ReadContext,
  { id, deviceId, startedAt }: Pick<BootRow, 'id' | 'deviceId' | 'startedAt'>,
): Promise<TraceContext | null> {
  if (!deviceId) return null
  const { organizationId } = actor
  const runDevice = await db.scheduleRunDevice.findFirst({
    where: { organizationId, bootId: id, run: { traceparent: { not: null } } },
    select: { run: { select: { traceparent: true } } },
  })
  if (runDevice) return parseTraceparent(runDevice.run.traceparent)
  const query = {
    where: {
      organizationId,
      deviceId,
      traceparent: { not: null },
      requestedAt: {
        gte: new Date(startedAt.getTime() - orderedBeforeMs),
        lte: new Date(startedAt.getTime() + clocksDifferMs),
      },
    },
    orderBy: { requestedAt: 'desc' as const },
    select: { requestedAt: true, traceparent: true },
  }
  const [powerOn, powerOrder] = await Promise.all([db.powerOn.findFirst(query), db.powerOrder.findFirst(query)])
  const isOrderLater = powerOrder && (!powerOn || powerOrder.requestedAt > powerOn.requestedAt)
  return parseTraceparent(isOrderLater ? powerOrder.traceparent : powerOn?.traceparent)
}
