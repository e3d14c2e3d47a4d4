'use client'

import type { AppRouter } from '@bootfarm/api/router'
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createTRPCClient, httpBatchLink, httpSubscriptionLink, splitLink } from '@trpc/client'
import { type ReactNode, useState } from 'react'
import { errorCode, TRPCProvider } from '../../lib/trpc'
import { IdentityCheck, IdentityDialog, identityLink } from './identity-check'
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
  const [check] = useState(() => new IdentityCheck())
  const [trpcClient] = useState(() => createClient(check))
  return (
    <QueryClientProvider client={queryClient}>
      <TRPCProvider trpcClient={trpcClient} queryClient={queryClient}>
        {children}
        <IdentityDialog check={check} />
      </TRPCProvider>
    </QueryClientProvider>
  )
}

function createClient(check: IdentityCheck) {
  return createTRPCClient<AppRouter>({
    links: [
      identityLink(check),
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
