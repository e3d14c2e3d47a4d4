import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import type { ListSort, SortField } from '../rules/list-sort.ts'

/**
 * The value that the list is sorted by (a text, an ISO instant or the digits of a count), the row's id, and the order
 * that both belong to.
 */
const cursorKey = z.tuple([z.string().nullable(), z.uuid(), z.string().optional()])

interface Asked {
  sort: string
  cursor?: string | null | undefined
  limit: number
}

/** The row that the page before ended with. */
interface LastRow {
  value: string | Date | bigint | null
  id: string
}

interface ListOrder {
  isDescending: boolean
  after: LastRow | null
  /** These three are the statement's: `take` reads one row too many, to learn whether there is a next page. */
  where: object
  /** The same as `where` in one or two parts, one after the other: each of them is a range of an index. */
  parts: object[]
  orderBy: object[]
  take: number
  page<Row extends object, Item>(rows: Row[], item: (row: Row) => Item): { items: Item[]; nextCursor: string | null }
}

/** Reads a list page by page in one of its orders. Throws `invalid` for the cursor of another order. */
export function listOrder(list: ListSort, { sort, cursor, limit }: Asked): ListOrder {
  const isDescending = sort.startsWith('-')
  const field = list.fields[isDescending ? sort.slice(1) : sort]
  if (!field) throw new AppError('internal', { internal: `a list has no order ${sort}` })
  const { path, mayBeNull } = field
  const direction = isDescending ? 'desc' : 'asc'
  const byField = mayBeNull ? { sort: direction, nulls: isDescending ? 'last' : 'first' } : direction
  const after = cursor ? lastRowOf(list, { field, sort }, cursor) : null
  const parts = after ? rowsAfter(after, { field, idPath: list.idPath, isDescending }) : [{}]
  return {
    isDescending,
    after,
    where: parts.length > 1 ? { OR: parts } : (parts[0] ?? {}),
    parts,
    orderBy: [at(path, byField), at(list.idPath, direction)],
    take: limit + 1,
    page(rows, item) {
      const page = rows.slice(0, limit)
      const last = page.at(-1)
      const key = last && rows.length > limit ? [textAt(last, path), textAt(last, list.idPath), sort] : null
      const nextCursor = key && Buffer.from(JSON.stringify(key)).toString('base64url')
      return { items: page.map(item), nextCursor }
    },
  }
}

function lastRowOf(list: ListSort, { field, sort }: { field: SortField; sort: string }, cursor: string): LastRow {
  const parsed = cursorKey.safeParse(jsonOf(cursor))
  if (!parsed.success) throw refused('The cursor does not belong to this list.')
  const [value, id, made = list.initial] = parsed.data
  if (made !== sort && list.input.safeParse(made).success)
    throw refused(`The cursor belongs to the list with sort=${made}, not ${sort}. Start without a cursor.`)
  const isRight = made === sort && (value !== null || field.mayBeNull)
  const exact = value === null ? null : exactValue(field, value)
  if (!isRight || exact === undefined) throw refused('The cursor does not belong to this list.')
  return { value: exact, id }
}

/** The range of PostgreSQL's `bigint` has 19 digits; no count comes near. */
const digits = /^\d{1,18}$/

/** Undefined for a text that no value of the field has. */
function exactValue({ kind }: SortField, text: string): string | Date | bigint | undefined {
  if (kind === 'count') return digits.test(text) ? BigInt(text) : undefined
  if (kind === 'text') return text
  const at = new Date(text)
  return Number.isNaN(at.getTime()) ? undefined : at
}

function refused(message: string): AppError {
  return new AppError('invalid', { public: message, fields: [{ in: 'query', field: 'cursor', message }] })
}

function jsonOf(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return null
  }
}

interface Direction {
  field: SortField
  idPath: string
  isDescending: boolean
}

function rowsAfter({ value, id }: LastRow, { field, idPath, isDescending }: Direction): object[] {
  const { path, mayBeNull } = field
  const beyond = isDescending ? 'lt' : 'gt'
  const sameValue = { AND: [at(path, value), at(idPath, { [beyond]: id })] }
  if (value === null) return isDescending ? [sameValue] : [sameValue, at(path, { not: null })]
  const later = { OR: [at(path, { [beyond]: value }), sameValue] }
  // Redundant, but lets PostgreSQL start in the index at the page.
  const withValue = { AND: [at(path, { [`${beyond}e`]: value }), later] }
  return isDescending && mayBeNull ? [withValue, at(path, null)] : [withValue]
}

/**
 * Reads a page of a long list that may be sorted by nothing: PostgreSQL would look for both parts from the beginning of
 * the list on.
 */
export async function readParts<Row>(
  { parts, take }: Pick<ListOrder, 'parts' | 'take'>,
  find: (where: object, take: number) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const where of parts) if (rows.length < take) rows.push(...(await find(where, take - rows.length)))
  return rows
}

/** `{ user: { name: value } }` for `user.name`. */
function at(path: string, value: unknown): object {
  return path.split('.').reduceRight((inner, name) => ({ [name]: inner }), value) as object
}

/** Throws where the list does not read what it is sorted by. */
function textAt(row: object, path: string): string | null {
  const value = path.split('.').reduce((inner: unknown, name) => Reflect.get(Object(inner), name), row)
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'string' || value === null) return value
  throw new AppError('internal', { internal: `a list is sorted by ${path}, which it does not read` })
}
