import { siteDetail, siteGetInput, siteListInput, sitePage } from '../../domain/farm-view.ts'
import { getSite } from '../../services/site/get-site.ts'
import { listSites } from '../../services/site/list-sites.ts'
import { procedure, router } from '../trpc.ts'

export const siteRouter = router({
  list: procedure
    .meta({ minimumRole: 'viewer' })
    .input(siteListInput)
    .output(sitePage)
    .query(({ ctx, input }) => listSites(ctx, input)),
  get: procedure
    .meta({ minimumRole: 'viewer' })
    .input(siteGetInput)
    .output(siteDetail)
    .query(({ ctx, input }) => getSite(ctx, input.siteId)),
})
