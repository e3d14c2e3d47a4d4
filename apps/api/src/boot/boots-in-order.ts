import type { Prisma } from '@bootfarm/db'
import { type listOrder, readParts } from '../context/list-order.ts'
import { dayMs } from '../rules/utc-day.ts'
import { type BootDayRow, partitionsMax } from './boots-by-start.ts'
import { type BootRow, findOrderedBoots, nameBoots, type ReadContext } from './read-boots.ts'

interface Options {
  order: ReturnType<typeof listOrder>
  /** From `readBootDays`. */
  days: BootDayRow[]
  where: Prisma.BootWhereInput
  /** Only boots that started then or later; null for all. */
  since: Date | null
  /** Only boots that started before. */
  before: Date | null
}

/**
 * Reads boots in an order other than by start: the first rows may be in any partition, so every day of the span is
 * read, a page of each by its index. A page costs as much as the span has days, and not as it has boots.
 */
export async function readBootsInOrder(context: ReadContext, options: Options): Promise<BootRow[]> {
  const { order, since, before } = options
  const startedAt = { ...(since ? { gte: since } : {}), ...(before ? { lt: before } : {}) }
  const days = options.days
    .filter(
      ({ receivedOn, earliestStartedAt }) =>
        (since === null || receivedOn.getTime() + dayMs > since.getTime()) &&
        (before === null || earliestStartedAt < before),
    )
    .map(({ receivedOn }) => receivedOn)
  const rows = await readParts(order, async (part, take) => {
    const found: Awaited<ReturnType<typeof findOrderedBoots>> = []
    const where = { AND: [options.where, { startedAt }, part] }
    for (let index = 0; index < days.length; index += partitionsMax) {
      const some = days.slice(index, index + partitionsMax)
      found.push(...(await findOrderedBoots(context, { where, days: some, orderBy: order.orderBy, limit: take })))
    }
    return found.sort(byDuration(order.isDescending)).slice(0, take)
  })
  return nameBoots(context, rows)
}

type Sorted = Pick<BootRow, 'durationUs' | 'id'>

/** As `listOrder` sorts: null is the smallest. */
function byDuration(isDescending: boolean): (a: Sorted, b: Sorted) => number {
  const sign = isDescending ? -1 : 1
  return (a, b) => {
    const [left, right] = [a.durationUs ?? -1n, b.durationUs ?? -1n]
    if (left !== right) return left < right ? -sign : sign
    return a.id < b.id ? -sign : sign
  }
}
