import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordDifference } from '../events/record-change.ts'
import { type SavedViewsView, savedViewsView } from './views-schema.ts'

/** The views that the caller has named: nobody else sees them. */
export async function getViews({ db, actor }: ServiceContext): Promise<SavedViewsView> {
  if (actor.userId === null) return { views: [] }
  const row = await db.savedViews.findUnique({
    where: ownKey(actor.organizationId, actor.userId),
    select: { views: true },
  })
  return { views: savedViewsView.shape.views.safeParse(row?.views).data ?? [] }
}

/** Replaces them. Throws `forbidden` for a caller who is no member. */
export async function setViews(context: ServiceContext, { views }: SavedViewsView): Promise<SavedViewsView> {
  const { db, actor } = context
  const { organizationId, userId, userName } = actor
  if (userId === null) throw new AppError('forbidden', { public: 'Views belong to a person. Sign in to save them.' })
  const before = await getViews(context)
  await db.savedViews.upsert({
    where: ownKey(organizationId, userId),
    create: { organizationId, userId, views },
    update: { views },
  })
  const after = { views }
  await recordDifference(context, { kind: 'member', id: userId, name: userName, before, after })
  return after
}

function ownKey(organizationId: string, userId: string) {
  return { organizationId_userId: { organizationId, userId } }
}
