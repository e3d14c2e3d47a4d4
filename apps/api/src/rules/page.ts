import { z } from 'zod'

/** Lists are read page by page: a page continues after the last row's sort key, which travels as an opaque cursor. */

const pageSizeMax = 100
const pageSizeDefault = 50

export const pageInput = {
  cursor: z.string().max(512).nullish(),
  limit: z.number().int().min(1).max(pageSizeMax).default(pageSizeDefault),
}

/** Part of the name, upper or lower case. */
export const searchInput = { search: z.string().trim().max(64).optional() }

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() })
}
