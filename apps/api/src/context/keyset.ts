import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'

/** For lists of one order; context/list-order.ts reads the others. */
const key = z.tuple([z.string(), z.uuid()])

/**
 * The position after which a page continues: the sort key's text (a name, or an ISO instant) and the id that makes it
 * unique.
 */
type KeysetKey = z.infer<typeof key>

function encodeCursor(sortKey: KeysetKey): string {
  return Buffer.from(JSON.stringify(sortKey)).toString('base64url')
}

/** Null for the first page; `invalid` for a cursor that this API did not make. */
export function decodeCursor(cursor: string | null | undefined): KeysetKey | null {
  if (!cursor) return null
  try {
    return key.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
  } catch (cause) {
    throw new AppError('invalid', { public: 'The cursor does not belong to this list.', cause })
  }
}

/** Like `decodeCursor`, for lists sorted by an instant. */
export function decodeInstantCursor(cursor: string | null | undefined): { at: Date; id: string } | null {
  const sortKey = decodeCursor(cursor)
  if (!sortKey) return null
  const at = new Date(sortKey[0])
  if (Number.isNaN(at.getTime())) throw new AppError('invalid', { public: 'The cursor does not belong to this list.' })
  return { at, id: sortKey[1] }
}

/**
 * Cuts the one row too many that a list reads to learn whether there is a next page.
 * @param rows at most limit + 1 rows
 */
export function cutPage<Row, Item>(
  rows: Row[],
  limit: number,
  map: { item: (row: Row) => Item; key: (row: Row) => KeysetKey },
): { items: Item[]; nextCursor: string | null } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const nextCursor = rows.length > limit && last !== undefined ? encodeCursor(map.key(last)) : null
  return { items: page.map(map.item), nextCursor }
}

/** The order of lists sorted by name. */
export const byName = [{ name: 'asc' as const }, { id: 'asc' as const }]

/** The `where` of lists that are searched by name. */
export function nameContains(search: string | undefined) {
  return search ? { name: { contains: escapeLike(search), mode: 'insensitive' as const } } : {}
}

/** Prisma hands `contains` to LIKE as it is, wildcards included. */
export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}
