import { nextPage } from '../../lib/next-page'
import { readFilters } from '../../lib/read-filters'
import type { FirstReader } from '../first-data/read-first-data'
import { bootingNowInput, edgesInput, firstReadyInput, sitesInput } from './overview-inputs'
import { scopeOf, scopeShape } from './overview-scope'

/** Reads what the overview shows first, in one request. @param query the parameters of the page's address */
export async function readOverview({ queryClient, trpc, watched }: FirstReader, query: URLSearchParams): Promise<void> {
  const scope = scopeOf(readFilters(scopeShape, query))
  await watched
  await Promise.all([
    queryClient.prefetchQuery(trpc.boot.list.queryOptions(firstReadyInput)),
    queryClient.prefetchQuery(trpc.overview.get.queryOptions(scope)),
    queryClient.prefetchInfiniteQuery(trpc.boot.list.infiniteQueryOptions(bootingNowInput(scope), nextPage)),
    queryClient.prefetchQuery(trpc.site.list.queryOptions(sitesInput(scope))),
    queryClient.prefetchQuery(trpc.edge.list.queryOptions(edgesInput(scope))),
  ])
}
