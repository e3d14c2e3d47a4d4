import { Prisma } from '@bootfarm/db'
import { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { memoryGibOf, memoryRange } from '../rules/device/memory-size.ts'
import { dayMs } from '../rules/utc-day.ts'
import { type BootDayRow, partitionsMax } from './boots-by-start.ts'
import type { BootRow } from './read-boots.ts'

/**
 * Lists of boots by a value that few devices differ in, such as the number of processors: the boots of the first value,
 * the newest first, then those of the next one. An index has the values, and each value's boots are a list like any
 * other, so that no index has a value together with the start of its boots.
 */

type Value = string | number | null

interface Sorted {
  column: Prisma.Sql
  /** A column of text; otherwise of numbers. */
  isText: boolean
  /** The condition on boots that count as having the value. */
  where: (value: Value) => Prisma.BootWhereInput
  /** The smallest and the largest in the column that count as the value. */
  range: (value: string | number) => { least: string | number; most: string | number }
  /** What a value of the column counts as. */
  countsAs: (stored: string | number) => string | number
}

const same = (value: string | number) => ({ least: value, most: value })
const asStored = (stored: string | number) => stored

export const sortedValues = {
  hour: {
    column: Prisma.sql`hour`,
    isText: false,
    where: (value) => ({ hour: value as number | null }),
    range: same,
    countsAs: asStored,
  },
  processors: {
    column: Prisma.sql`processors`,
    isText: false,
    where: (value) => ({ processors: value as number | null }),
    range: same,
    countsAs: asStored,
  },
  memoryGib: {
    column: Prisma.sql`memory_mib`,
    isText: false,
    where: (value) => ({ memoryMib: value === null ? null : memoryRange(Number(value)) }),
    range: (value) => ({ least: memoryRange(Number(value)).gte, most: memoryRange(Number(value)).lte }),
    countsAs: (stored) => memoryGibOf(Number(stored)),
  },
  networkCard: {
    column: Prisma.sql`network_card`,
    isText: true,
    where: (value) => ({ networkCard: value as string | null }),
    range: same,
    countsAs: asStored,
  },
  storage: {
    column: Prisma.sql`storage`,
    isText: true,
    where: (value) => ({ storage: value as string | null }),
    range: same,
    countsAs: asStored,
  },
} satisfies Record<string, Sorted>
export type SortedName = keyof typeof sortedValues

/** Null for another order. */
export function sortedNameOf(sort: string): SortedName | null {
  const name = sort.replace(/^-/, '')
  return Object.hasOwn(sortedValues, name) ? (name as SortedName) : null
}

/**
 * Values that one page looks through: a filter may leave no boots of most of them, and devices choose what they report.
 * Such a page is shorter than asked, and has a cursor.
 */
const valuesMax = 40

interface Place {
  value: Value
  /** Within the boots of the value; null: at their beginning. */
  cursor: string | null
}

interface Options {
  sort: string
  cursor: string | null
  limit: number
  /** From `readBootDays`. */
  days: BootDayRow[]
  since: Date | null
  /** Only boots that started before. */
  before: Date | null
  /** A page of boots of one value by start, the newest first. */
  readPage: (
    of: Prisma.BootWhereInput,
    page: { cursor: string | null; limit: number },
  ) => Promise<{ items: BootRow[]; nextCursor: string | null }>
}

/** Throws `invalid` for the cursor of another order. */
export async function readBootsByValue(
  context: Pick<ServiceContext, 'db' | 'actor'>,
  options: Options,
): Promise<{ items: BootRow[]; nextCursor: string | null }> {
  const { sort, limit, readPage } = options
  const name = sortedNameOf(sort)
  if (!name) throw new AppError('internal', { internal: `boots are not sorted by ${sort}` })
  const values = new Values(context, { sorted: sortedValues[name], isDescending: sort.startsWith('-'), options })
  const items: BootRow[] = []
  let place = options.cursor ? placeOf(options.cursor, sort) : await values.first()
  for (let looked = 0; place !== undefined; looked += 1) {
    if (items.length === limit || looked === valuesMax) return { items, nextCursor: cursorOf(place, sort) }
    const { value, cursor }: Place = place
    const page = await readPage(sortedValues[name].where(value), { cursor, limit: limit - items.length })
    items.push(...page.items)
    if (page.nextCursor) return { items, nextCursor: cursorOf({ value, cursor: page.nextCursor }, sort) }
    place = await values.after(value)
  }
  return { items, nextCursor: null }
}

function cursorOf({ value, cursor }: Place, sort: string): string {
  return Buffer.from(JSON.stringify([value, cursor, sort])).toString('base64url')
}

const placeShape = z.tuple([
  z.union([
    z.string().max(64),
    z
      .number()
      .int()
      .min(0)
      .max(2 ** 31),
    z.null(),
  ]),
  z.string().max(1_000).nullable(),
  z.string(),
])

function placeOf(text: string, sort: string): Place {
  const [value, cursor, made] = placeShape.safeParse(jsonOf(text)).data ?? [null, null, null]
  const name = sortedNameOf(sort)
  const isRight = value === null || (name !== null && sortedValues[name].isText === (typeof value === 'string'))
  if (made === sort && isRight) return { value, cursor }
  const message = `The cursor does not belong to the list with sort=${sort}. Start without a cursor.`
  throw new AppError('invalid', { public: message, fields: [{ in: 'query', field: 'cursor', message }] })
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
}

interface ValueOptions {
  sorted: Sorted
  isDescending: boolean
  options: Pick<Options, 'days' | 'since' | 'before'>
}

/** The values that boots of the organization have, in order. None counts as smaller than any. */
class Values {
  readonly #context: Pick<ServiceContext, 'db' | 'actor'>
  readonly #sorted: Sorted
  readonly #isDescending: boolean
  readonly #days: Date[][]

  constructor(context: Pick<ServiceContext, 'db' | 'actor'>, { sorted, isDescending, options }: ValueOptions) {
    const { days, since, before } = options
    const within = days
      .filter(
        ({ receivedOn, earliestStartedAt }) =>
          (since === null || receivedOn.getTime() + dayMs > since.getTime()) &&
          (before === null || earliestStartedAt < before),
      )
      .map(({ receivedOn }) => receivedOn)
    this.#context = context
    this.#sorted = sorted
    this.#isDescending = isDescending
    this.#days = Array.from({ length: Math.ceil(within.length / partitionsMax) }, (_, index) =>
      within.slice(index * partitionsMax, (index + 1) * partitionsMax),
    )
  }

  async first(): Promise<Place | undefined> {
    return this.#isDescending ? this.#next(Prisma.sql`true`) : { value: null, cursor: null }
  }

  async after(value: Value): Promise<Place | undefined> {
    const { column, isText, range } = this.#sorted
    if (value === null) return this.#isDescending ? undefined : this.#next(Prisma.sql`true`)
    const { least, most } = range(value)
    const type = isText ? Prisma.sql`text` : Prisma.sql`bigint`
    return this.#next(
      this.#isDescending ? Prisma.sql`${column} < ${least}::${type}` : Prisma.sql`${column} > ${most}::${type}`,
    )
  }

  async #next(condition: Prisma.Sql): Promise<Place | undefined> {
    const { db, actor } = this.#context
    const { column, countsAs } = this.#sorted
    const extreme = this.#isDescending ? Prisma.sql`max` : Prisma.sql`min`
    const found: (string | number)[] = []
    for (const days of this.#days) {
      const [row] = await db.$queryRaw<{ value: string | number | null }[]>`
        select ${extreme}(${column}) as value from boot where organization_id = ${actor.organizationId}::uuid
          and received_on = any(${days.map((day) => day.toISOString().slice(0, 10))}::date[]) and ${condition}`
      if (row && row.value !== null) found.push(row.value)
    }
    const stored = found.length > 1 ? await this.#extremeOf(found) : found[0]
    if (stored !== undefined) return { value: countsAs(stored), cursor: null }
    return this.#isDescending ? { value: null, cursor: null } : undefined
  }

  /** As PostgreSQL orders texts: its collation is not that of JavaScript. */
  async #extremeOf(found: (string | number)[]): Promise<string | number | undefined> {
    const extreme = this.#isDescending ? Prisma.sql`max` : Prisma.sql`min`
    const type = this.#sorted.isText ? Prisma.sql`text` : Prisma.sql`integer`
    const [row] = await this.#context.db.$queryRaw<{ value: string | number }[]>`
      select ${extreme}(value) as value from unnest(${found}::${type}[]) as value`
    return row?.value
  }
}
