'use client'

import { z } from 'zod'
import { useUrlFilters } from './use-url-filters'

/** The address of a list that is searched by name, sorted by name or date of creation, and may be of one farm. */
const shape = {
  sort: z.enum(['name', '-name', 'createdAt', '-createdAt']).optional(),
  search: z.string().max(64).optional(),
  farm: z.uuid().optional(),
}

/** The state of such a list, with the API's input. */
export function useNamedList() {
  const { filters, bind, setFilter, clearFilters, filtered } = useUrlFilters(shape)
  const { sort, search, farm } = filters
  return {
    input: { ...(sort && { sort }), ...(search && { search }), ...(farm && { farmId: farm }) },
    sorting: { value: sort ?? 'name', onSort: (next: string) => setFilter('sort', next) },
    search: bind('search'),
    farm: bind('farm'),
    onClear: filtered ? clearFilters : undefined,
  }
}
