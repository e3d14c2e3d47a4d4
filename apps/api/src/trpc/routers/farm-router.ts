import { farmListInput, farmOverview, farmOverviewInput, farmPage } from '../../domain/farm-view.ts'
import { getFarmOverview } from '../../services/farm/get-farm-overview.ts'
import { listFarms } from '../../services/farm/list-farms.ts'
import { procedure, router } from '../trpc.ts'

export const farmRouter = router({
  list: procedure
    .meta({
      permission: 'farm.read',
      place: 'visible',
      rest: { method: 'GET', path: '/farms', summary: 'Farms' },
    })
    .input(farmListInput)
    .output(farmPage)
    .query(({ ctx, input }) => listFarms(ctx, input)),
  overview: procedure
    .meta({
      permission: 'farm.read',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'GET', path: '/farms/{farmId}/overview', summary: 'A farm in figures' },
    })
    .input(farmOverviewInput)
    .output(farmOverview)
    .query(({ ctx, input }) => getFarmOverview(ctx, input.farmId)),
})
