import type { z } from 'zod'
import { liveSchedule, visibleSchedules } from '../access/visible.ts'
import { afterName, cutPage, nameContains } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { scheduleSummaryOf, scheduleSummarySelect } from './rows.ts'
import type { scheduleListInput, schedulePage } from './schema.ts'

/** By name. Those of a site are its own and those of all its farm's sites. */
export async function listSchedules(
  { db, clock, actor }: ServiceContext,
  input: z.output<typeof scheduleListInput>,
): Promise<z.infer<typeof schedulePage>> {
  const { organizationId } = actor
  const now = clock()
  const { siteId } = input
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
        afterName(input.cursor),
      ],
    },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: scheduleSummarySelect,
  })
  return cutPage(rows, input.limit, {
    item: (row) => scheduleSummaryOf(row, now),
    key: (row) => [row.name, row.id],
  })
}
