import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'

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

/** Does the same as `cutPage`, for lists sorted by name. */
export function cutNamedPage<Row extends { id: string; name: string }, Item>(
  rows: Row[],
  limit: number,
  item: (row: Row) => Item,
): { items: Item[]; nextCursor: string | null } {
  return cutPage(rows, limit, { item, key: ({ name, id }) => [name, id] })
}

interface NameKeyset {
  OR?: [{ name: { gt: string } }, { name: string; id: { gt: string } }]
}

/** The `where` of lists sorted by (name, id): what comes after the cursor. */
export function afterName(cursor: string | null | undefined): NameKeyset {
  const after = decodeCursor(cursor)
  if (!after) return {}
  const [name, id] = after
  return { OR: [{ name: { gt: name } }, { name, id: { gt: id } }] }
}

/** The `where` of lists that are searched by name. */
export function nameContains(search: string | undefined) {
  return search ? { name: { contains: escapeLike(search), mode: 'insensitive' as const } } : {}
}

interface InstantKeyset {
  OR?: [{ createdAt: { lt: Date } }, { createdAt: Date; id: { lt: string } }]
}

/** The `where` of lists sorted by (createdAt, id), newest first: what comes after the cursor. */
export function beforeInstant(cursor: string | null | undefined): InstantKeyset {
  const after = decodeInstantCursor(cursor)
  if (!after) return {}
  return { OR: [{ createdAt: { lt: after.at } }, { createdAt: after.at, id: { lt: after.id } }] }
}

/** Prisma hands `contains` to LIKE as it is, wildcards included. */
export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}
