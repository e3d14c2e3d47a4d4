'use client'

import { useQueryClient } from '@tanstack/react-query'
import { useSubscription } from '@trpc/tanstack-react-query'
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef } from 'react'
import { Dot } from '../../components/tag'
import { errorCode, useTRPC } from '../../lib/trpc'
import { signInPath } from '../session/sign-in-path'
import { applyBootChange } from './apply-boot-change'
import { changesWithBoots } from './changes-with-boots'

/** Lists and counts are read again at most this often, however many boots report. */
const refreshIntervalMs = 1000
const bootsRememberedMax = 500

type LiveStatus = 'live' | 'connecting' | 'away'

const LiveStatusContext = createContext<LiveStatus>('connecting')

function useLiveStatus(): LiveStatus {
  return useContext(LiveStatusContext)
}

/** One subscription for the whole dashboard: each boot's change goes into the cache, and so onto the open page. */
export function LiveUpdates({ children }: { children: ReactNode }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const refreshLists = useListRefresh()
  const turns = useRef(new Map<string, string>())
  const subscription = useSubscription(
    trpc.boot.onChange.subscriptionOptions(undefined, {
      onData: ({ data: change }) => {
        if (change.kind === 'synced') {
          void queryClient.invalidateQueries()
          return
        }
        if (change.kind === 'discovered' || change.kind === 'withdrawn') {
          refreshLists()
          return
        }
        const { boot } = change
        applyBootChange(queryClient, trpc, boot)
        // Only a boot that starts or ends can enter or leave a list, or change a count; and an order that its device
        // took.
        const turn = `${boot.outcome} ${boot.takenPowerOrder?.id}`
        if (turns.current.get(boot.id) === turn) return
        if (turns.current.size >= bootsRememberedMax) turns.current.clear()
        turns.current.set(boot.id, turn)
        refreshLists()
      },
      onError: (error) => {
        if (errorCode(error) === 'UNAUTHORIZED')
          window.location.assign(signInPath(window.location.pathname + window.location.search))
      },
    }),
  )
  const status = statusOf(subscription.status)
  return <LiveStatusContext value={status}>{children}</LiveStatusContext>
}

function statusOf(status: 'idle' | 'connecting' | 'pending' | 'error'): LiveStatus {
  if (status === 'pending') return 'live'
  return status === 'error' ? 'away' : 'connecting'
}

/** Loads what is on the screen and counts boots again, gathered over `refreshIntervalMs`. */
function useListRefresh(): () => void {
  const queryClient = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current)
      timer.current = null
    },
    [],
  )
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null
      void queryClient.invalidateQueries({ predicate: ({ queryKey }) => changesWithBoots(queryKey) })
    }, refreshIntervalMs)
  }, [queryClient])
}

const statusText = {
  live: { text: 'Live', tone: 'ready', title: 'Updates appear here live.' },
  connecting: { text: 'Connecting', tone: 'silent', title: 'Connecting to live updates.' },
  away: { text: 'Not live', tone: 'failed', title: 'Live updates stopped. Reload the page.' },
} as const

/** Whether the page is kept up to date. */
export function LiveMark() {
  const { text, tone, title } = statusText[useLiveStatus()]
  return (
    <span role="status" title={title} className="flex items-center gap-1.5 text-ink-soft text-xs">
      <Dot tone={tone} pulsing={tone !== 'failed'} />
      {text}
    </span>
  )
}
