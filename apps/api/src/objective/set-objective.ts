import { requireCurrent } from '../access/require-current.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordDifference } from '../events/record-change.ts'
import { getObjective } from './get-objective.ts'
import { type ObjectiveFields, type ObjectiveView, objectivesMax } from './schema.ts'

const hourMs = 3_600_000

interface Target {
  kind: 'site' | 'collection'
  id: string
}

/**
 * Sets or removes the objective of a site or a collection. With another time, boots are counted from the current hour
 * on: counts by the former time say nothing. Throws `not_found`; `conflict` if there are too many objectives.
 */
export async function setObjective(
  context: ServiceContext,
  { kind, id }: Target,
  objective: ObjectiveFields,
): Promise<ObjectiveView> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind, id })
  const before = (await getObjective(context, id)).objective
  if (!objective || before?.seconds !== objective.seconds)
    await db.objective.deleteMany({ where: { organizationId, placeId: id } })
  if (objective) {
    if (!before) await requireSpace(context)
    const { percent, seconds, days } = objective
    const fields = { permille: Math.round(percent * 10), seconds, days }
    const key = { organizationId, placeId: id }
    const where = { siteId: place.siteId ?? '', collectionId: place.collectionId }
    const countedSince = new Date(Math.floor(clock().getTime() / hourMs) * hourMs)
    await db.objective.upsert({
      where: { organizationId_placeId: key },
      create: { ...key, ...where, ...fields, countedSince },
      update: fields,
    })
  }
  const { name } = await nameOf(context, { kind, id })
  await recordDifference(context, { kind, id, name, place, before: { objective: before }, after: { objective } })
  return getObjective(context, id)
}

async function requireSpace({ db, actor: { organizationId } }: ServiceContext): Promise<void> {
  if ((await db.objective.count({ where: { organizationId } })) >= objectivesMax)
    throw new AppError('conflict', {
      public: `An organization can have at most ${objectivesMax} objectives. Remove one first, or set one for a whole site.`,
    })
}

function nameOf({ db, actor }: ServiceContext, { kind, id }: Target): Promise<{ name: string }> {
  const query = { where: ownRow(actor, id), select: { name: true } } as const
  return kind === 'site' ? db.site.findUniqueOrThrow(query) : db.collection.findUniqueOrThrow(query)
}
