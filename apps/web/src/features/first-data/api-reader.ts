import type { AppRouter } from '@bootfarm/api/router'
import { QueryClient } from '@tanstack/react-query'
import { createTRPCClient, httpBatchLink } from '@trpc/client'
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query'
import { apiUrl } from '../../env'

/** The API takes no more procedures in one request. */
const batchSizeMax = 20

/** The person whose browser requested the page. */
export interface Asker {
  cookie: string
  /** The addresses that the request came through, the last one seen by this server. */
  forwardedFor: string
}

/** What is read together goes in one request. */
export type ApiReader = ReturnType<typeof openReader>

/**
 * Reads of the API for one page of one person, by the procedures that the browser calls, with that person's cookie.
 * Make a reader for each request: it keeps what it has read.
 * @param signal ends what is still being read
 */
export function openReader({ cookie, forwardedFor }: Asker, signal: AbortSignal) {
  const queryClient = new QueryClient({
    defaultOptions: { queries: { retry: false, staleTime: Number.POSITIVE_INFINITY } },
  })
  const client = createTRPCClient<AppRouter>({
    links: [
      httpBatchLink({
        url: `${apiUrl()}/api/trpc`,
        maxItems: batchSizeMax,
        headers: { cookie, ...(forwardedFor && { 'x-forwarded-for': forwardedFor }) },
        // The signal of this request ends each of them.
        fetch: (url, init) => fetch(url, { method: 'GET', headers: init?.headers ?? {}, cache: 'no-store', signal }),
      }),
    ],
  })
  return { client, queryClient, trpc: createTRPCOptionsProxy<AppRouter>({ client, queryClient }) }
}
