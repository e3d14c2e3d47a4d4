import { procedure, router } from '../http/trpc/trpc.ts'
import { getOverview } from './get-overview.ts'
import { overview, overviewInput } from './schema.ts'

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
})
