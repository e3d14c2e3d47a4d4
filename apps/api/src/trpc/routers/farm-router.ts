import { farmListInput, farmOverview, farmOverviewInput, farmPage } from '../../domain/farm-view.ts'
import { getFarmOverview } from '../../services/farm/get-farm-overview.ts'
import { listFarms } from '../../services/farm/list-farms.ts'
import { procedure, router } from '../trpc.ts'

export const farmRouter = router({
  list: procedure
    .meta({ minimumRole: 'viewer' })
    .input(farmListInput)
    .output(farmPage)
    .query(({ ctx, input }) => listFarms(ctx, input)),
  overview: procedure
    .meta({ minimumRole: 'viewer' })
    .input(farmOverviewInput)
    .output(farmOverview)
    .query(({ ctx, input }) => getFarmOverview(ctx, input.farmId)),
})
