import { readFilters } from '../../lib/read-filters'
import type { FirstReader } from '../first-data/read-first-data'
import { stormInput, stormShape } from './storm-inputs'

/** Reads the storm that the page shows first. @param query the parameters of the page's address */
export async function readStorm({ queryClient, trpc, watched }: FirstReader, query: URLSearchParams): Promise<void> {
  const input = stormInput(readFilters(stormShape, query))
  await watched
  await queryClient.prefetchQuery(trpc.storm.get.queryOptions(input))
}
