import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { capacityOf } from './capacity.ts'
import { quarterStep } from './load-steps.ts'
import type { EdgeCapacity } from './schema.ts'

const dayMs = 86_400_000
/** Two working weeks; what came before may have been another edge, or other devices. */
const measuredDays = 14
const bitsPerByte = 8
const bitsPerMegabit = 1_000_000

/** Throws `not_found`. */
export async function getCapacity({ db, clock, actor }: ServiceContext, edgeId: string): Promise<EdgeCapacity> {
  const edge = await db.edge.findUnique({ where: ownRow(actor, edgeId), select: { id: true } })
  if (!edge) throw new AppError('not_found')
  const until = clock()
  const from = new Date(until.getTime() - measuredDays * dayMs)
  const rows = await db.edgeLoad.findMany({
    where: {
      organizationId: actor.organizationId,
      edgeId,
      stepMinutes: quarterStep,
      at: { gte: from },
      devicesPeak: { gt: 0 },
    },
    select: {
      at: true,
      processorMs: true,
      busyPeak: true,
      busyPeakDevices: true,
      sentPeak: true,
      sentPeakDevices: true,
      linkMbps: true,
    },
  })
  const loads = rows.map(({ at, processorMs, busyPeak, busyPeakDevices, sentPeak, sentPeakDevices, linkMbps }) => ({
    at,
    processor: processorMs === 0n ? null : { share: Math.min(1, busyPeak), devices: Number(busyPeakDevices) },
    link: linkMbps
      ? {
          share: Math.min(1, (Number(sentPeak) * bitsPerByte) / (Number(linkMbps) * bitsPerMegabit)),
          devices: Number(sentPeakDevices),
          linkMbps: Number(linkMbps),
        }
      : null,
  }))
  return capacityOf(loads, { from, until })
}
