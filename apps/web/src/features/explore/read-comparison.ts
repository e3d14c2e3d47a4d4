import { readFilters } from '../../lib/read-filters'
import type { FirstReader } from '../first-data/read-first-data'
import { compareInput, compareShape, setsOf } from './compare-inputs'

/** Reads what the page shows first. @param query the parameters of the page's address */
export async function readComparison({ queryClient, trpc, now }: FirstReader, query: URLSearchParams): Promise<void> {
  const input = compareInput(setsOf(readFilters(compareShape, query)), now)
  await queryClient.prefetchQuery(trpc.explore.compare.queryOptions(input))
}
