'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTRPC } from '../../lib/trpc'
import type { BootSummary } from '../boots/boot-types'
import { useBootChanges } from '../live/live-updates'
import type { stormInput } from './storm-inputs'
import { stormModelOf, withBoots } from './storm-model'

/** What the changes of boots do not tell is read again: power-ons, what is usual, the throughput of edges. */
const refreshMs = 10_000
/** Changes that come meanwhile are drawn together. */
const drawEveryMs = 250
/** Longer than an answer may take: it may lack what changed since it was asked for. */
const rememberedMs = 60_000

/** The devices of a scope, which follow the live updates between two reads. */
export function useStorm(input: ReturnType<typeof stormInput>) {
  const query = useQuery(
    useTRPC().storm.get.queryOptions(input, {
      refetchInterval: refreshMs,
      placeholderData: keepPreviousData,
      structuralSharing: false,
    }),
  )
  const boots = useRecentBoots()
  const base = useMemo(() => query.data && stormModelOf(query.data), [query.data])
  const model = useMemo(() => base && withBoots(base, boots), [base, boots])
  // The clock of this browser may be wrong.
  const offsetMs = useMemo(
    () => (query.data ? Date.parse(query.data.at) - query.dataUpdatedAt : 0),
    [query.data, query.dataUpdatedAt],
  )
  return { query, model, offsetMs }
}

/** Boots that changed within the last minute, each in its newest state. */
function useRecentBoots(): BootSummary[] {
  const known = useRef(new Map<string, { boot: BootSummary; atMs: number }>())
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const [boots, setBoots] = useState<BootSummary[]>([])
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current)
      timer.current = null
    },
    [],
  )
  const onBoot = useCallback((boot: BootSummary) => {
    known.current.set(boot.id, { boot, atMs: performance.now() })
    timer.current ??= setTimeout(() => {
      timer.current = null
      const fromMs = performance.now() - rememberedMs
      for (const [id, { atMs }] of known.current) if (atMs < fromMs) known.current.delete(id)
      setBoots([...known.current.values()].map((entry) => entry.boot))
    }, drawEveryMs)
  }, [])
  useBootChanges(onBoot)
  return boots
}
