import type { FirstReader } from '../first-data/read-first-data'

/** Reads a boot for its page, beside the session: the live updates begin with the whole boot. */
export async function readBoot({ queryClient, trpc }: FirstReader, bootId: string): Promise<void> {
  await Promise.all([
    queryClient.prefetchQuery(trpc.boot.get.queryOptions({ bootId })),
    queryClient.prefetchQuery(trpc.boot.usual.queryOptions({ bootId })),
  ])
}
