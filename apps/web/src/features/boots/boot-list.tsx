'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { PagedList } from '../../components/paged-list'
import type { Sorting } from '../../components/table'
import { nextPage, type RouterInputs, useTRPC } from '../../lib/trpc'
import { BarLegend, barScaleUs } from './boot-bar'
import { bootColumns, bootColumnsOfOneDevice } from './boot-columns'

export type BootListInput = RouterInputs['boot']['list']

/** Boots, the newest first unless sorted otherwise; kept up to date by the live updates. */
export function BootList({ input, empty, sorting }: { input: BootListInput; empty: ReactNode; sorting?: Sorting }) {
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
    <>
      <PagedList
        label="Boots"
        query={query}
        columns={columns(barScaleUs(boots))}
        rowKey={(boot) => boot.id}
        empty={empty}
        sorting={sorting}
      />
      {boots.length > 0 && <BarLegend />}
    </>
  )
}
