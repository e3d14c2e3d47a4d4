'use client'

import { useQueryClient } from '@tanstack/react-query'
import { useSubscription } from '@trpc/tanstack-react-query'
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef } from 'react'
import { errorCode } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { signInPath } from '../session/sign-in-path'
import { applyBootChange } from './apply-boot-change'

/** What lists and figures count is asked for again at most this often, however many boots report. */
const refreshIntervalMs = 1000
const bootsRememberedMax = 500

export type LiveStatus = 'live' | 'connecting' | 'away'

const LiveStatusContext = createContext<LiveStatus>('connecting')

export function useLiveStatus(): LiveStatus {
  return useContext(LiveStatusContext)
}

/** One subscription for the whole dashboard: each boot's change goes into what is cached, and so onto the open page. */
export function LiveUpdates({ children }: { children: ReactNode }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const { refreshLists, refreshBoot } = useRefresh()
  const turns = useRef(new Map<string, string>())
  const subscription = useSubscription(
    trpc.boot.onChange.subscriptionOptions(undefined, {
      onData: ({ data: change }) => {
        if (change.kind === 'synced') {
          void queryClient.invalidateQueries()
          return
        }
        if (change.kind === 'discovered') {
          refreshLists()
          return
        }
        if (change.kind === 'withdrawn') {
          refreshBoot(change.bootId)
          refreshLists()
          return
        }
        const { boot } = change
        applyBootChange(queryClient, trpc, boot)
        refreshBoot(boot.id)
        // Only a boot that begins or ends can enter or leave a list, or change what is counted; and an order that its device took.
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

/** Asks again for lists and for single boots, gathered over `refreshIntervalMs`; only what is on the screen is loaded. */
function useRefresh() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const wanted = useRef({ lists: false, bootIds: new Set<string>() })

  const flush = useCallback(() => {
    timer.current = null
    const { lists, bootIds } = wanted.current
    wanted.current = { lists: false, bootIds: new Set() }
    for (const bootId of bootIds) void queryClient.invalidateQueries(trpc.boot.get.queryFilter({ bootId }))
    if (!lists) return
    for (const filter of [
      trpc.boot.list.pathFilter(),
      trpc.device.pathFilter(),
      trpc.farm.overview.pathFilter(),
      trpc.edge.pathFilter(),
      trpc.discovered.pathFilter(),
      trpc.schedule.pathFilter(),
      trpc.vdisk.pathFilter(),
    ])
      void queryClient.invalidateQueries(filter)
  }, [queryClient, trpc])

  const schedule = useCallback(() => {
    timer.current ??= setTimeout(flush, refreshIntervalMs)
  }, [flush])
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current)
      timer.current = null
    },
    [],
  )
  const refreshLists = useCallback(() => {
    wanted.current.lists = true
    schedule()
  }, [schedule])
  const refreshBoot = useCallback(
    (bootId: string) => {
      wanted.current.bootIds.add(bootId)
      schedule()
    },
    [schedule],
  )
  return { refreshLists, refreshBoot }
}
