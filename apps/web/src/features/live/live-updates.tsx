'use client'

import { useQueryClient } from '@tanstack/react-query'
import { useSubscription } from '@trpc/tanstack-react-query'
import { usePathname } from 'next/navigation'
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react'
import { Dot } from '../../components/tag'
import { type BootChange, errorCode, useTRPC } from '../../lib/trpc'
import { signInPath } from '../session/sign-in-path'
import { changeWriter, readAgain, refreshAll, refreshDiscovered } from './apply-change'
import { changesWithBoots } from './changes-with-boots'
import { openBootId } from './open-boot'

/** Lists and counts are read again at most this often, however many boots report. */
const refreshIntervalMs = 1000

type LiveStatus = 'live' | 'connecting' | 'away'

const LiveStatusContext = createContext<LiveStatus>('connecting')

type BootListener = (boot: Extract<BootChange, { kind: 'boot' }>['boot']) => void

const BootListenersContext = createContext<Set<BootListener>>(new Set())

/**
 * Calls `listener` with each boot that changes, for a page that keeps more boots than a list of the cache. The same
 * function must be passed each time.
 */
export function useBootChanges(listener: BootListener): void {
  const listeners = useContext(BootListenersContext)
  useEffect(() => {
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }, [listeners, listener])
}

function useLiveStatus(): LiveStatus {
  return useContext(LiveStatusContext)
}

interface LiveUpdatesProps {
  /** The newest change before the server read what the page shows; null: nothing is known to have been read since. */
  after: string | null
  children: ReactNode
}

/**
 * The only subscription of the dashboard. On the page of a boot it also carries that boot whole, so opening or leaving
 * such a page replaces the connection, and the new one continues after the last event of the old.
 */
export function LiveUpdates({ after, children }: LiveUpdatesProps) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const refreshLists = useListRefresh()
  const lastEventId = useRef(after)
  const bootId = openBootId(usePathname())
  const input = useMemo(() => ({ bootId, lastEventId: lastEventId.current }), [bootId])
  const firstInput = useRef(input)
  const syncedInput = useRef<object | null>(null)
  const [listeners] = useState(() => new Set<BootListener>())
  const write = useMemo(() => changeWriter({ queryClient, trpc }, refreshLists), [queryClient, trpc, refreshLists])
  const subscription = useSubscription(
    trpc.boot.onChange.subscriptionOptions(input, {
      onData: ({ id, data: change }) => {
        lastEventId.current = id
        if (change.kind !== 'synced') {
          write(change)
          if (change.kind === 'boot') for (const listener of listeners) listener(change.boot)
          return
        }
        const continues = input.lastEventId !== null && syncedInput.current !== input
        syncedInput.current = input
        // Boots that changed between the two connections follow; discovered devices have no number to continue after.
        if (!continues) refreshAll({ queryClient, trpc }, bootId)
        else if (input === firstInput.current) refreshDiscovered({ queryClient, trpc })
        else refreshLists()
      },
      onError: (error) => {
        if (errorCode(error) === 'UNAUTHORIZED')
          window.location.assign(signInPath(window.location.pathname + window.location.search))
      },
    }),
  )
  const status = statusOf(subscription.status)
  return (
    <LiveStatusContext value={status}>
      <BootListenersContext value={listeners}>{children}</BootListenersContext>
    </LiveStatusContext>
  )
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
      readAgain(queryClient, ({ queryKey }) => changesWithBoots(queryKey))
    }, refreshIntervalMs)
  }, [queryClient])
}

const statusText = {
  live: { text: 'Live', tone: 'ready', title: 'Updates appear here live.' },
  connecting: { text: 'Connecting', tone: 'silent', title: 'Connecting to live updates.' },
  away: { text: 'Not live', tone: 'failed', title: 'Live updates stopped. Reload the page.' },
} as const

/** Shows whether live updates reach the page. */
export function LiveMark() {
  const { text, tone, title } = statusText[useLiveStatus()]
  return (
    <span role="status" title={title} className="flex items-center gap-1.5 text-ink-soft text-xs">
      <Dot tone={tone} pulsing={tone !== 'failed'} />
      {text}
    </span>
  )
}
