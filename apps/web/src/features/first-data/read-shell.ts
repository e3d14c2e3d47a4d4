import { type DehydratedState, dehydrate } from '@tanstack/react-query'
import { TRPCClientError } from '@trpc/client'
import { cache } from 'react'
import { type SessionView, sessionLimitMs, sessionView } from '../session/read-session'
import { openReader } from './api-reader'
import { pageRequest } from './page-request'

type ShellAnswer =
  | {
      kind: 'signed-in'
      session: SessionView
      firstData: DehydratedState
      /**
       * The newest change of boots before anything else was read: live updates that continue after it bring all that
       * the page does not show. Null if it is not known.
       */
      newestChange: string | null
    }
  /** A person without any membership. */
  | { kind: 'no-organization' }
  | { kind: 'signed-out' }
  | { kind: 'api-away' }

/**
 * Asks the API in one request who is signed in, and what the frame around every page shows, so that the first paint is
 * already the right page. It decides nothing: every answer with data in it is authorised by the API.
 */
export const readShell = cache(async (): Promise<ShellAnswer> => {
  const { asker, isDocument } = await pageRequest()
  if (asker.cookie === '') return { kind: 'signed-out' }
  const { client, queryClient, trpc } = openReader(asker, AbortSignal.timeout(sessionLimitMs))
  const [me, access, newest] = await Promise.allSettled([
    queryClient.fetchQuery(trpc.session.me.queryOptions()),
    queryClient.fetchQuery(trpc.session.access.queryOptions()),
    isDocument ? client.boot.newestChange.query() : null,
    ...(isDocument
      ? [
          queryClient.fetchQuery(trpc.organization.get.queryOptions({})),
          queryClient.fetchQuery(trpc.discovered.waitingCount.queryOptions()),
          queryClient.fetchQuery(trpc.alert.openCount.queryOptions()),
        ]
      : []),
  ])
  if (me.status === 'rejected') {
    const { reason } = me
    if (reason instanceof TRPCClientError && reason.data?.code === 'UNAUTHORIZED')
      return { kind: access.status === 'fulfilled' ? 'no-organization' : 'signed-out' }
    console.error('session:', reason instanceof Error ? (reason.cause ?? reason.message) : reason)
    return { kind: 'api-away' }
  }
  return {
    kind: 'signed-in',
    session: sessionView.parse(me.value),
    firstData: dehydrate(queryClient),
    newestChange: newest.status === 'fulfilled' ? (newest.value?.id ?? null) : null,
  }
})
