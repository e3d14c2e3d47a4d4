import { procedure, router } from '../http/trpc/trpc.ts'
import { getCollectionOverview } from './get-collection-overview.ts'
import { getOverview } from './get-overview.ts'
import { collectionOverview, collectionOverviewInput, overview, overviewInput } from './schema.ts'

export const overviewRouter = router({
  get: procedure
    .meta({
      permission: 'farm.read',
      place: 'visible',
      rest: { method: 'GET', path: '/overview', summary: 'Figures of the organization, a farm or a site' },
    })
    .input(overviewInput)
    .output(overview)
    .query(({ ctx, input }) => getOverview(ctx, input)),
  ofCollection: procedure
    .meta({
      permission: 'collection.read',
      place: { kind: 'collection', id: 'collectionId' },
      rest: { method: 'GET', path: '/collections/{collectionId}/overview', summary: 'Figures of a collection' },
    })
    .input(collectionOverviewInput)
    .output(collectionOverview)
    .query(({ ctx, input }) => getCollectionOverview(ctx, input.collectionId)),
})
