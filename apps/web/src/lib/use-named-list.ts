'use client'

import { z } from 'zod'
import { useUrlFilters } from './use-url-filters'

/** The address of a list that is searched by name, and sorted by name or date of creation. */
const shape = {
  sort: z.enum(['name', '-name', 'createdAt', '-createdAt']).optional(),
  search: z.string().max(64).optional(),
}

/** The state of such a list, with the API's input. */
export function useNamedList() {
  const { filters, bind, setFilter, clearFilters, filtered } = useUrlFilters(shape)
  const { sort, search } = filters
  return {
    input: { ...(sort && { sort }), ...(search && { search }) },
    sorting: { value: sort ?? 'name', onSort: (next: string) => setFilter('sort', next) },
    search: bind('search'),
    onClear: filtered ? clearFilters : undefined,
  }
}
