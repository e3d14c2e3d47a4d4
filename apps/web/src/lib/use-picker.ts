'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { type RouterInputs, type RouterOutputs, useTRPCClient } from './trpc'
import { useDelayed } from './use-delayed'

/** The maximum that the API returns at once. */
const pageSize = 100

/** The kinds that a picker can list, in the words of its search field. */
const plurals = {
  farm: 'farms',
  site: 'sites',
  collection: 'collections',
  device: 'devices',
  edge: 'edges',
  vdisk: 'vDisks',
  store: 'stores',
  bootMenu: 'boot menus',
  schedule: 'schedules',
  member: 'members',
} as const

type Noun = keyof typeof plurals
type PageInput = 'limit' | 'cursor' | 'search'
type Where<N extends Noun> = Omit<Exclude<RouterInputs[N]['list'], void>, PageInput>
type Item<N extends Noun> = RouterOutputs[N]['list']['items'][number]
interface PageOf<T> {
  items: T[]
  nextCursor: string | null
}

/** The objects that a picker offers: a page of them, more on demand, or those that a search finds. */
export interface Picker<T> {
  items: T[]
  /** Every object that this picker has ever shown, so that a choice outlives a search for another one. */
  itemOf: (id: string) => T | undefined
  idOf(item: T): string
  plural: string
  search: string
  onSearch: (search: string) => void
  hasMore: boolean
  /** There are more objects than one page holds. */
  isLong: boolean
  isLoadingMore: boolean
  loadMore: () => void
  /** False until the first answer. */
  isLoaded: boolean
  error: unknown
  retry: () => void
}

/** Lists the objects of a noun by name, with search and paging in the API: none is out of reach. */
export function usePicker<N extends Noun>(noun: N, where: Where<N>, { enabled = true } = {}): Picker<Item<N>> {
  const client = useTRPCClient()
  const [search, setSearch] = useState('')
  const term = useDelayed(search.trim())
  const scope = JSON.stringify(where)
  const query = useInfiniteQuery({
    // Begins like the procedure's own key, so that a change of the noun refreshes pickers, too.
    queryKey: [[noun, 'list'], { picker: scope, term }] as const,
    queryFn: ({ pageParam }): Promise<PageOf<Item<N>>> => {
      const list = client[noun].list as unknown as { query: (input: object) => Promise<PageOf<Item<N>>> }
      return list.query({
        ...where,
        limit: pageSize,
        ...(term && { search: term }),
        ...(pageParam && { cursor: pageParam }),
      })
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    // The list stays during a search, but objects of another place are never shown.
    placeholderData: (previous, query) => (query?.queryKey[1].picker === scope ? previous : undefined),
    enabled,
  })
  const items = query.data?.pages.flatMap((page) => page.items) ?? []
  const known = useRef(new Map<string, Item<N>>())
  for (const item of items) known.current.set(idOf(item), item)
  return {
    items,
    itemOf: (id) => known.current.get(id),
    idOf,
    plural: plurals[noun],
    search,
    onSearch: setSearch,
    hasMore: query.hasNextPage,
    isLong: query.hasNextPage || items.length > pageSize,
    isLoadingMore: query.isFetchingNextPage,
    loadMore: () => void query.fetchNextPage(),
    isLoaded: query.data !== undefined,
    error: query.error,
    retry: () => void query.refetch(),
  }
}

function idOf(item: Item<Noun>): string {
  return 'userId' in item ? item.userId : item.id
}
