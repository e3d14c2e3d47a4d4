import { type QueryKey, useQueryClient } from '@tanstack/react-query'

/** For `onSuccess`: reads what a change touched again, or everything where no filter is given. */
export function useRefresh(filter?: { queryKey: QueryKey }): () => Promise<void> {
  const queryClient = useQueryClient()
  return () => queryClient.invalidateQueries(filter && { queryKey: filter.queryKey })
}
