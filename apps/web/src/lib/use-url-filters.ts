'use client'

import { usePathname, useSearchParams } from 'next/navigation'
import { useCallback, useEffect, useMemo, useRef } from 'react'
import type { z } from 'zod'
import { readFilters } from './read-filters.ts'

/**
 * Filters that live in the URL: a link or a reload shows the same list.
 * @param shape one optional schema for each parameter
 */
export function useUrlFilters<Shape extends Record<string, z.ZodType<string | undefined>>>(shape: Shape) {
  const parameters = useSearchParams()
  const pathname = usePathname()

  const query = parameters.toString()
  // By its text: the same query keeps the same filters, and everything derived from them.
  const filters = useMemo(() => readFilters(shape, new URLSearchParams(query)), [shape, query])

  // While Next applies a query, the address bar may briefly show an earlier one: a new value then builds on the last
  // requested one, not on the address bar.
  const asked = useRef<string[]>([])
  useEffect(() => {
    asked.current = stillAwaited(asked.current, query)
  }, [query])
  const ask = useCallback(
    (next: string) => {
      asked.current.push(next)
      // Next reads this back through useSearchParams, without asking the server for the page again.
      window.history.replaceState(null, '', next === '' ? pathname : `${pathname}?${next}`)
    },
    [pathname],
  )
  const setFilters = useCallback(
    (values: { [Name in keyof Shape]?: string | undefined }) => {
      const next = new URLSearchParams(asked.current.at(-1) ?? window.location.search)
      for (const [name, value = ''] of Object.entries<string | undefined>(values)) {
        if (value === '') next.delete(name)
        else next.set(name, value)
      }
      ask(next.toString())
    },
    [ask],
  )
  const setFilter = useCallback(
    (name: keyof Shape & string, value: string) => setFilters({ [name]: value } as { [Name in keyof Shape]?: string }),
    [setFilters],
  )
  const clearFilters = useCallback(() => ask(''), [ask])
  /** The value of a filter's field, and its change handler. */
  const bind = (name: keyof Shape & string) => ({
    value: filters[name],
    onChange: (value: string) => setFilter(name, value),
  })
  return {
    filters,
    setFilter,
    setFilters,
    bind,
    clearFilters,
    filtered: Object.keys(filters).some((name) => name !== 'sort'),
  }
}

/** The requested queries after the one that arrived; none if another arrived, by a link or by going back. */
export function stillAwaited(asked: string[], came: string): string[] {
  const index = asked.lastIndexOf(came)
  return index < 0 ? [] : asked.slice(index + 1)
}
