import { readFilters } from '../../lib/read-filters'
import type { FirstReader } from '../first-data/read-first-data'
import { networkInput, networkShape } from './network-inputs'

/** Reads what the page shows first. @param query the parameters of the page's address */
export async function readNetwork({ queryClient, trpc, now }: FirstReader, query: URLSearchParams): Promise<void> {
  const input = networkInput(readFilters(networkShape, query), now)
  await queryClient.prefetchQuery(trpc.network.report.queryOptions(input))
}
