import { collectionListInput, collectionPage } from '../../domain/farm-view.ts'
import { listCollections } from '../../services/collection/list-collections.ts'
import { procedure, router } from '../trpc.ts'

export const collectionRouter = router({
  list: procedure
    .meta({ minimumRole: 'viewer' })
    .input(collectionListInput)
    .output(collectionPage)
    .query(({ ctx, input }) => listCollections(ctx, input)),
})
