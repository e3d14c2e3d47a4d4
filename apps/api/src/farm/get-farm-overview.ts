import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { getOverview } from '../overview/public.ts'
import type { FarmOverview } from './schema.ts'

/** Throws `not_found`. */
export async function getFarmOverview(context: ServiceContext, farmId: string): Promise<FarmOverview> {
  const { db, actor } = context
  const farm = await db.farm.findUnique({
    where: ownRow(actor, farmId),
    select: { id: true, name: true, createdAt: true, revision: true },
  })
  if (!farm) throw new AppError('not_found')
  const { counts, recentBoots, last24Hours, byDay } = await getOverview(context, { farmId })
  return { farm: { ...farm, createdAt: farm.createdAt.toISOString() }, counts, recentBoots, last24Hours, byDay }
}
