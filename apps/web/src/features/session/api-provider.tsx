'use client'

import type { AppRouter } from '@bootfarm/api/router'
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createTRPCClient, httpBatchLink, httpSubscriptionLink, splitLink } from '@trpc/client'
import { type ReactNode, useState } from 'react'
import { errorCode, TRPCProvider } from '../../lib/trpc'
import { signInPath } from './sign-in-path'

const url = '/api/trpc'
const retriesMax = 2
/** The API takes no more procedures in one request. */
const batchSizeMax = 20
/** Live updates report changes, so shown data stays fresh without polling. */
const staleTimeMs = 30_000

/** Connects everything in the browser to the API; the browser adds the session cookie. */
export function ApiProvider({ children }: { children: ReactNode }) {
  const [queryClient] = useState(createQueryClient)
  const [trpcClient] = useState(createClient)
  return (
    <QueryClientProvider client={queryClient}>
      <TRPCProvider trpcClient={trpcClient} queryClient={queryClient}>
        {children}
      </TRPCProvider>
    </QueryClientProvider>
  )
}

function createClient() {
  return createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: (operation) => operation.type === 'subscription',
        true: httpSubscriptionLink({ url }),
        false: httpBatchLink({ url, maxItems: batchSizeMax }),
      }),
    ],
  })
}

function createQueryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({ onError: leadToSignIn }),
    defaultOptions: { queries: { staleTime: staleTimeMs, retry: worthRetrying } },
  })
}

/** The API answered for good on a client's error; only its absence is worth another try. */
function worthRetrying(failureCount: number, error: unknown): boolean {
  return errorCode(error) === undefined && failureCount < retriesMax
}

/** The session ended while pages were open. */
function leadToSignIn(error: unknown): void {
  if (errorCode(error) !== 'UNAUTHORIZED') return
  const { pathname, search } = window.location
  window.location.assign(signInPath(pathname + search))
}
