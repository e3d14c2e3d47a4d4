'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { PagedList } from '../../components/paged-list'
import { useTRPC } from '../../lib/trpc'
import { barScaleUs } from './boot-bar'
import { bootColumns, bootColumnsOfOneDevice } from './boot-columns'

export interface BootListInput {
  outcome?: 'ready' | 'failed' | 'silent' | 'superseded' | 'booting'
  deviceId?: string
  edgeId?: string
  simulated?: boolean
  generated?: boolean
  since?: string
  limit?: number
}

/** Boots by begin, newest first; kept up to date by the live updates. */
export function BootList({ input, empty }: { input: BootListInput; empty: ReactNode }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.boot.list.infiniteQueryOptions(input, {
      getNextPageParam: (page) => page.nextCursor,
      placeholderData: keepPreviousData,
    }),
  )
  const columns = input.deviceId && input.limit ? bootColumnsOfOneDevice : bootColumns
  const boots = query.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <PagedList
      label="Boots"
      query={query}
      columns={columns(barScaleUs(boots))}
      rowKey={(boot) => boot.id}
      empty={empty}
    />
  )
}
