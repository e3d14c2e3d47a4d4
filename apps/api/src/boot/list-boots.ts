import type { z } from 'zod'
import { visibleBoots } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { readBootDays, readBootsByStart } from './boots-by-start.ts'
import { readBootsByValue, sortedNameOf } from './boots-by-value.ts'
import { readBootsInOrder } from './boots-in-order.ts'
import { whereOfFilter } from './filter-boots.ts'
import { bootSummaryOf } from './rows.ts'
import { type bootListInput, type bootPage, bootSort } from './schema.ts'

type Input = z.output<typeof bootListInput>
type Context = Pick<ServiceContext, 'db' | 'clock' | 'actor'>

export async function listBoots(context: Context, input: Input): Promise<z.infer<typeof bootPage>> {
  const [visible, filter, afterLast, days] = await Promise.all([
    visibleBoots(context),
    whereOfFilter(context, input),
    afterLastBoot(context, input.deviceId),
    readBootDays(context),
  ])
  const where = { AND: [visible, filter] }
  const since = input.since ? new Date(input.since) : null
  const before = earliest(input.until ? new Date(input.until) : null, afterLast)
  const now = context.clock()
  const span = { days, since, before }
  if (sortedNameOf(input.sort)) {
    const { items, nextCursor } = await readBootsByValue(context, {
      sort: input.sort,
      cursor: input.cursor ?? null,
      limit: input.limit,
      ...span,
      readPage: (of, page) => readNewest(context, { ...span, ...page, where: { AND: [where, of] } }),
    })
    return { items: items.map((row) => bootSummaryOf(row, now)), nextCursor }
  }
  const order = listOrder(bootSort, input)
  const byStart = input.sort === 'startedAt' || input.sort === '-startedAt'
  const rows = await (byStart
    ? readByStart(context, { order, where, ...span })
    : readBootsInOrder(context, { order, where, ...span }))
  return order.page(rows, (row) => bootSummaryOf(row, now))
}

interface Newest extends Omit<ByStart, 'order'> {
  cursor: string | null
  limit: number
}

async function readNewest(context: Context, { cursor, limit, ...options }: Newest) {
  const order = listOrder(bootSort, { sort: '-startedAt', cursor, limit })
  return order.page(await readByStart(context, { order, ...options }), (row) => row)
}

interface ByStart extends Omit<Parameters<typeof readBootsByStart>[1], 'limit' | 'oldestFirst'> {
  order: ReturnType<typeof listOrder>
  since: Date | null
}

function readByStart(context: Context, { order, days, where, since, before }: ByStart) {
  const oldestFirst = !order.isDescending
  const last = order.after?.value instanceof Date ? order.after.value : null
  return readBootsByStart(context, {
    days,
    oldestFirst,
    where: { AND: [where, order.where] },
    // An instant later than the cursor's: others of the very same one may still come.
    before: oldestFirst ? before : earliest(last && new Date(last.getTime() + 1), before),
    since: latest(since, oldestFirst ? last : null),
    limit: order.take,
  })
}

/** A device's row has the start of its newest boot, so nothing newer needs to be read. */
async function afterLastBoot({ db, actor }: Context, deviceId: string | undefined): Promise<Date | null> {
  if (!deviceId) return null
  const device = await db.device.findUnique({
    where: ownRow(actor, deviceId),
    select: { lastBootStartedAt: true },
  })
  return device?.lastBootStartedAt ? new Date(device.lastBootStartedAt.getTime() + 1) : null
}

function earliest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b
  return a < b ? a : b
}

function latest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b
  return a > b ? a : b
}
