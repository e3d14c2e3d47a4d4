import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { liveSchedule, visibleSchedules } from '../access/visible.ts'
import { byName, nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { scheduleDetailSelect, scheduleSummaryOf, scheduleSummarySelect } from './rows.ts'
import { type ScheduleDetail, type scheduleListInput, type schedulePage, scheduleSort } from './schema.ts'
import { readOverfullSites } from './target-room.ts'

/** A clock that is this far off is worth a word. */
const clockOffsetToleratedMs = 60_000

/** Throws `not_found`. */
export async function getSchedule(
  { db, clock, actor: { organizationId } }: ServiceContext,
  scheduleId: string,
): Promise<ScheduleDetail> {
  return readSchedule(db, { organizationId, scheduleId }, clock())
}

export async function readSchedule(
  db: DbOrTransaction,
  { organizationId, scheduleId }: { organizationId: string; scheduleId: string },
  now: Date,
): Promise<ScheduleDetail> {
  const row = await db.schedule.findUnique({
    where: ownRow({ organizationId }, scheduleId),
    select: scheduleDetailSelect,
  })
  if (!row) throw new AppError('not_found')
  const edges = await db.edge.findMany({
    where: {
      organizationId,
      revokedAt: null,
      clockOffsetMs: { not: null },
      ...(row.siteId ? { siteId: row.siteId } : { site: { farmId: row.farmId } }),
    },
    orderBy: byName,
    select: { id: true, name: true, clockOffsetMs: true },
  })
  const overfull = await readOverfullSites(db, { organizationId, ...row })
  const summary = scheduleSummaryOf(row, now)
  const last = row.instants.at(-1)
  return {
    ...summary,
    targets: row.targets.flatMap(targetOf),
    knownUntil: summary.nextInstant && last ? last.toISOString() : null,
    wrongClocks: edges.flatMap(({ id, name, clockOffsetMs }) => {
      const offsetMs = Number(clockOffsetMs ?? 0)
      return Math.abs(offsetMs) > clockOffsetToleratedMs ? [{ edgeId: id, name, offsetMs }] : []
    }),
    withheldAt: overfull.flatMap(({ siteId, siteName, namedCount, limit, withheldScheduleIds }) =>
      withheldScheduleIds.includes(row.id) ? [{ siteId, siteName, namedCount, limit }] : [],
    ),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

type TargetRow = Prisma.ScheduleGetPayload<{ select: typeof scheduleDetailSelect }>['targets'][number]

function targetOf({ kind, deviceId, collectionId, tag, device, collection }: TargetRow): ScheduleDetail['targets'] {
  if (kind === 'device' && deviceId && device)
    return [{ kind, deviceId, name: device.name, siteName: device.site.name }]
  if (kind === 'collection' && collectionId && collection)
    return [{ kind, collectionId, name: collection.name, siteName: collection.site.name }]
  return kind === 'tag' && tag ? [{ kind, tag }] : []
}

/** By name. The schedules of a site are its own and those for all sites of its farm. */
export async function listSchedules(
  { db, clock, actor }: ServiceContext,
  input: z.output<typeof scheduleListInput>,
): Promise<z.infer<typeof schedulePage>> {
  const { organizationId } = actor
  const now = clock()
  const { siteId } = input
  const order = listOrder(scheduleSort, input)
  const rows = await db.schedule.findMany({
    where: {
      organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...(input.enabled === undefined ? {} : { enabled: input.enabled }),
      ...nameContains(input.search),
      AND: [
        siteId ? { OR: [{ siteId }, { siteId: null, farm: { sites: { some: { organizationId, id: siteId } } } }] } : {},
        liveSchedule,
        visibleSchedules(actor),
        order.where,
      ],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: scheduleSummarySelect,
  })
  return order.page(rows, (row) => scheduleSummaryOf(row, now))
}
