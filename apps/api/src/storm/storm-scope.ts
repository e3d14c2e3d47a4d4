import { Prisma } from '@bootfarm/db'
import { liveSchedule, visibleCollections, visibleSchedules } from '../access/visible.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { nameScope } from '../overview/public.ts'
import type { Storm, StormInput } from './schema.ts'

const minuteMs = 60_000

export interface StormScope extends Pick<Storm, 'farm' | 'site' | 'collection' | 'run'> {
  since: Date
  /** The condition on `device`. */
  where: Prisma.Sql
  /** That on `site` for machines that nobody has registered; null: the scope has none. */
  unregistered: Prisma.Sql | null
}

/** Throws `not_found` for a farm, site, collection or run that the actor does not see, or that is not in the others. */
export async function readStormScope(context: ServiceContext, input: StormInput, now: Date): Promise<StormScope> {
  const { farmId, siteId, collectionId, runId } = input
  const place = await nameScope(context, { farmId, siteId })
  const collection = collectionId ? await findCollection(context, collectionId, input) : null
  const run = runId ? await findRun(context, runId) : null
  const organizationId = Prisma.sql`organization_id = ${context.actor.organizationId}::uuid`
  const conditions = [
    ...(siteId ? [Prisma.sql`device.site_id = ${siteId}::uuid`] : []),
    ...(farmId && !siteId
      ? [Prisma.sql`device.site_id in (select id from site where ${organizationId} and farm_id = ${farmId}::uuid)`]
      : []),
    ...(collectionId ? [Prisma.sql`device.collection_id = ${collectionId}::uuid`] : []),
    ...(runId
      ? [
          Prisma.sql`device.id in
            (select device_id from schedule_run_device where ${organizationId} and run_id = ${runId}::uuid)`,
        ]
      : []),
  ]
  return {
    ...place,
    collection,
    run: run && {
      id: run.id,
      scheduleId: run.scheduleId,
      name: run.schedule.name,
      instant: run.instant.toISOString(),
      state: run.state,
      ratePerMinute: run.ratePerMinute,
    },
    // A boot may begin a moment before its power-on is reported, by another clock.
    since: run
      ? new Date((run.startedAt ?? run.instant).getTime() - minuteMs)
      : new Date(now.getTime() - input.minutes * minuteMs),
    where: conditions.length > 0 ? Prisma.join(conditions, ' and ') : Prisma.sql`true`,
    unregistered: collectionId || runId ? null : siteCondition({ farmId, siteId }),
  }
}

function siteCondition({ farmId, siteId }: Pick<StormInput, 'farmId' | 'siteId'>): Prisma.Sql {
  if (siteId) return Prisma.sql`site.id = ${siteId}::uuid`
  return farmId ? Prisma.sql`site.farm_id = ${farmId}::uuid` : Prisma.sql`true`
}

async function findCollection({ db, actor }: ServiceContext, collectionId: string, { farmId, siteId }: StormInput) {
  const row = await db.collection.findUnique({
    where: { ...ownRow(actor, collectionId), AND: [visibleCollections(actor)] },
    select: { id: true, name: true, siteId: true, site: { select: { farmId: true } } },
  })
  const isApart = row && ((siteId && row.siteId !== siteId) || (farmId && row.site.farmId !== farmId))
  if (!row || isApart) throw new AppError('not_found')
  return { id: row.id, name: row.name }
}

async function findRun({ db, actor }: ServiceContext, runId: string) {
  const row = await db.scheduleRun.findUnique({
    where: { ...ownRow(actor, runId), schedule: { AND: [liveSchedule, visibleSchedules(actor)] } },
    select: {
      id: true,
      scheduleId: true,
      instant: true,
      startedAt: true,
      state: true,
      ratePerMinute: true,
      schedule: { select: { name: true } },
    },
  })
  if (!row) throw new AppError('not_found')
  return row
}
