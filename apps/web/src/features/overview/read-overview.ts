import { nextPage } from '../../lib/next-page'
import type { FirstReader } from '../first-data/read-first-data'
import { bootingNowInput, edgesInput, firstFarmInput, firstReadyInput, sitesInput } from './overview-inputs'

/** Reads what the overview shows first: the farm beside the session, then all else in one request. */
export async function readOverview({ queryClient, trpc, watched }: FirstReader): Promise<void> {
  const { items } = await queryClient.fetchQuery(trpc.farm.list.queryOptions(firstFarmInput))
  const [farm] = items
  await watched
  await Promise.all([
    queryClient.prefetchQuery(trpc.boot.list.queryOptions(firstReadyInput)),
    ...(farm
      ? [
          queryClient.prefetchQuery(trpc.farm.overview.queryOptions({ farmId: farm.id })),
          queryClient.prefetchInfiniteQuery(trpc.boot.list.infiniteQueryOptions(bootingNowInput, nextPage)),
          queryClient.prefetchQuery(trpc.site.list.queryOptions(sitesInput(farm.id))),
          queryClient.prefetchQuery(trpc.edge.list.queryOptions(edgesInput)),
        ]
      : []),
  ])
}
