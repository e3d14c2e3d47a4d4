'use client'

import { usePathname, useSearchParams } from 'next/navigation'
import { useCallback, useMemo } from 'react'
import type { z } from 'zod'

/**
 * Filters that live in the URL: a link or a reload shows the same list. A value that the schema does not know counts as
 * not set, so that an old or mistyped link never breaks a page.
 * @param shape one optional schema for each parameter
 */
export function useUrlFilters<Shape extends Record<string, z.ZodType<string | undefined>>>(shape: Shape) {
  type Filters = { [Name in keyof Shape]?: z.infer<Shape[Name]> }
  const parameters = useSearchParams()
  const pathname = usePathname()

  const query = parameters.toString()
  // By its text: the same query keeps the same filters, and with them whatever is made of them.
  const filters = useMemo(() => readFilters(shape, new URLSearchParams(query)), [shape, query]) as Filters

  const setFilter = useCallback(
    (name: keyof Shape & string, value: string) => {
      const next = new URLSearchParams(window.location.search)
      if (value === '') next.delete(name)
      else next.set(name, value)
      const query = next.toString()
      // Next reads this back through useSearchParams, without asking the server for the page again.
      window.history.replaceState(null, '', query === '' ? pathname : `${pathname}?${query}`)
    },
    [pathname],
  )
  const clearFilters = useCallback(() => window.history.replaceState(null, '', pathname), [pathname])
  return { filters, setFilter, clearFilters, filtered: Object.keys(filters).length > 0 }
}

export function readFilters(
  shape: Record<string, z.ZodType<string | undefined>>,
  parameters: { get(name: string): string | null },
): Record<string, string> {
  const filters: Record<string, string> = {}
  for (const [name, schema] of Object.entries(shape)) {
    const parsed = schema.safeParse(parameters.get(name) ?? undefined)
    if (parsed.success && parsed.data) filters[name] = parsed.data
  }
  return filters
}
