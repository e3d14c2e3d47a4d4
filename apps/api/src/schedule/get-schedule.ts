import type { Prisma } from '@bootfarm/db'
import { ownRow } from '../context/own-row.ts'
import type { DbOrTransaction, ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { scheduleDetailSelect, scheduleSummaryOf } from './rows.ts'
import type { ScheduleDetail } from './schema.ts'
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
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
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
