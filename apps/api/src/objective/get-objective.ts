import type { ServiceContext } from '../context/service-context.ts'
import type { ObjectiveView } from './schema.ts'

const dayMs = 86_400_000
const hourMs = 3_600_000

/** @param placeId of a site or a collection, which the caller may see */
export async function getObjective(
  { db, clock, actor: { organizationId } }: ServiceContext,
  placeId: string,
): Promise<ObjectiveView> {
  const row = await db.objective.findUnique({
    where: { organizationId_placeId: { organizationId, placeId } },
    select: { permille: true, seconds: true, days: true, countedSince: true },
  })
  if (!row) return { objective: null, since: null, boots: 0, missed: 0, budgetLeftPercent: null }
  const { permille, seconds, days, countedSince } = row
  const hour = Math.floor(clock().getTime() / hourMs) * hourMs
  const since = new Date(Math.max(hour - days * dayMs, countedSince.getTime()))
  const { _sum: sums } = await db.objectiveHour.aggregate({
    where: { organizationId, placeId, hour: { gte: since } },
    _sum: { boots: true, missed: true },
  })
  const { boots, missed } = { boots: sums.boots ?? 0, missed: sums.missed ?? 0 }
  const allowed = (boots * (1000 - permille)) / 1000
  return {
    objective: { percent: permille / 10, seconds, days },
    since: since.toISOString(),
    boots,
    missed,
    budgetLeftPercent: boots === 0 ? null : Math.round((1 - missed / allowed) * 1000) / 10,
  }
}
