import { readFilters } from '../../lib/read-filters'
import type { FirstReader } from '../first-data/read-first-data'
import { exploreInput, exploreShape } from './explore-inputs'

/** Reads what the page shows first. @param query the parameters of the page's address */
export async function readExplore({ queryClient, trpc, now }: FirstReader, query: URLSearchParams): Promise<void> {
  await queryClient.prefetchQuery(trpc.explore.get.queryOptions(exploreInput(readFilters(exploreShape, query), now)))
}
