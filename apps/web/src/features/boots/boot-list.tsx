'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { PagedList } from '../../components/paged-list'
import { nextPage, type RouterInputs, useTRPC } from '../../lib/trpc'
import { barScaleUs } from './boot-bar'
import { bootColumns, bootColumnsOfOneDevice } from './boot-columns'

export type BootListInput = Pick<
  RouterInputs['boot']['list'],
  'outcome' | 'deviceId' | 'edgeId' | 'origin' | 'since' | 'limit'
>

/** Boots by begin, newest first; kept up to date by the live updates. */
export function BootList({ input, empty }: { input: BootListInput; empty: ReactNode }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.boot.list.infiniteQueryOptions(input, {
      ...nextPage,
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
