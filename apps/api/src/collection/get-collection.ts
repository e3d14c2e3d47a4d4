import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { personalityOf } from '../rules/personality.ts'
import { collectionSummaryOf, collectionSummarySelect } from './list-collections.ts'
import type { CollectionDetail } from './schema.ts'

/** Throws `not_found`. */
export async function getCollection({ db, actor }: ServiceContext, collectionId: string): Promise<CollectionDetail> {
  const row = await db.collection.findUnique({
    where: ownRow(actor, collectionId),
    select: {
      ...collectionSummarySelect,
      createdAt: true,
      personality: true,
      templateDevice: { select: { id: true, name: true } },
      site: { select: { name: true, farmId: true, personality: true } },
    },
  })
  if (!row) throw new AppError('not_found')
  return {
    ...collectionSummaryOf(row),
    farmId: row.site.farmId,
    createdAt: row.createdAt.toISOString(),
    templateDevice: row.templateDevice,
    personality: personalityOf(row.personality),
    sitePersonality: personalityOf(row.site.personality),
  }
}
