import { type QueryKey, useQueryClient } from '@tanstack/react-query'

/** For `onSuccess`: reads again what a change touched, or everything without a filter. */
export function useRefresh(filter?: { queryKey: QueryKey }): () => Promise<void> {
  const queryClient = useQueryClient()
  return () => queryClient.invalidateQueries(filter && { queryKey: filter.queryKey })
}
