import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { horizonOf } from './schedule-horizon.ts'
import { cannotStart, placeOf, requireScope, targetFilter } from './schedule-targets.ts'
import { localText, plannedInstants } from './schedule-times.ts'
import type { previewInput, schedulePreview } from './schema.ts'

const instantsShown = 10

/**
 * What a schedule would do; targets that the place does not have count as none. Throws `not_found` for the farm or
 * site.
 */
export async function previewSchedule(
  { db, clock, actor }: ServiceContext,
  { farmId, siteId, when, timeZone, targets }: z.output<typeof previewInput>,
): Promise<z.infer<typeof schedulePreview>> {
  const now = clock()
  const scope = await requireScope(db, actor, { farmId, siteId, permission: 'schedule.read' })
  const place = { organizationId: scope.organizationId, ...placeOf(scope) }
  const where = { AND: [place, targetFilter(targets)] }
  const deviceCount = await db.device.count({ where })
  const skippedCount = await db.device.count({ where: { AND: [where, cannotStart] } })
  const { instants } = horizonOf({ enabled: true, when, timeZone, known: [] }, now)
  return {
    instants: plannedInstants({ when, timeZone }, now, instantsShown).map(({ at, note }) => ({
      at: at.toISOString(),
      local: localText(at, timeZone),
      note,
    })),
    deviceCount,
    skippedCount,
    knownUntil: instants.at(-1)?.toISOString() ?? null,
  }
}
