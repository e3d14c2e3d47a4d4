import { nextPage } from '../../lib/next-page'
import { readFilters } from '../../lib/read-filters'
import type { FirstReader } from '../first-data/read-first-data'
import { bootFilterShape, bootListInput } from './boot-filters'

/** Reads the first page of the list of boots. @param query the parameters of the page's address */
export async function readBoots(
  { queryClient, trpc, watched, now }: FirstReader,
  query: URLSearchParams,
): Promise<void> {
  const input = bootListInput(readFilters(bootFilterShape, query), now)
  await watched
  await queryClient.prefetchInfiniteQuery(trpc.boot.list.infiniteQueryOptions(input, nextPage))
}
