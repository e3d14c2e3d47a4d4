import type { Prisma } from '@bootfarm/db'
import { dayMs } from '../rules/utc-day.ts'
import { type BootRow, findBoots, nameBoots, type ReadContext } from './read-boots.ts'

/**
 * Returns the newest or oldest boots by start, without reading every day's partition. A boot's partition is the day on
 * which its first report arrived, never before it started; so boots that started since day D are in partitions from D
 * on. Spans grow while too few are found, and each reads only partitions with boots that started early enough.
 */

/** How many days with boots the first spans cover; later ones as many as the last. */
const spanDays = [2, 4, 8, 16, 32, 64]
/** Limits a statement: each partition that it reads costs planning and locks. */
export const partitionsMax = 64

export interface BootDayRow {
  receivedOn: Date
  earliestStartedAt: Date
}

interface Options {
  /** From `readBootDays`. */
  days: BootDayRow[]
  where: Prisma.BootWhereInput
  /** The newest first without it. */
  oldestFirst?: boolean
  /** Only boots that started before; null for all. */
  before: Date | null
  /** Only boots that started then or later. */
  since?: Date | null
  limit: number
}

/** The organization's days with boots, the newest first. */
export function readBootDays({ db, actor }: ReadContext): Promise<BootDayRow[]> {
  return db.bootDay.findMany({
    where: { organizationId: actor.organizationId },
    orderBy: { receivedOn: 'desc' },
    select: { receivedOn: true, earliestStartedAt: true },
  })
}

export async function readBootsByStart(context: ReadContext, options: Options): Promise<BootRow[]> {
  const { days, oldestFirst = false } = options
  const found: Awaited<ReturnType<typeof findBoots>> = []
  for (const span of oldestFirst ? spansFromOldest(days, options) : spansFromNewest(days, options)) {
    if (found.length >= options.limit) break
    const limit = options.limit - found.length
    const partitions = days.filter(
      ({ receivedOn, earliestStartedAt }) =>
        (span.from === null || receivedOn.getTime() + dayMs > span.from.getTime()) &&
        (span.until === null || earliestStartedAt < span.until),
    )
    found.push(...(await readSpan(context, { ...span, where: options.where, oldestFirst, partitions, limit })))
  }
  return nameBoots(context, found)
}

/** Counts the matching boots of these days. */
export async function countBoots(
  { db, actor: { organizationId } }: ReadContext,
  days: BootDayRow[],
  where: Prisma.BootWhereInput,
): Promise<number> {
  let count = 0
  for (let index = 0; index < days.length; index += partitionsMax) {
    const some = days.slice(index, index + partitionsMax).map(({ receivedOn }) => receivedOn)
    count += await db.boot.count({ where: { organizationId, receivedOn: { in: some }, AND: where } })
  }
  return count
}

/**
 * Returns when the first matching boot started after `startedAt`; null if there is none. Days that end before are not
 * read.
 */
export async function findNextBoot(
  { db, actor }: ReadContext,
  where: Prisma.BootWhereInput,
  startedAt: Date,
): Promise<Date | null> {
  const { organizationId } = actor
  const days = await db.bootDay.findMany({
    where: { organizationId, receivedOn: { gt: new Date(startedAt.getTime() - dayMs) } },
    orderBy: { receivedOn: 'asc' },
    select: { receivedOn: true, earliestStartedAt: true },
  })
  let next: Date | null = null
  for (let index = 0; index < days.length; index += partitionsMax) {
    const some = days.slice(index, index + partitionsMax)
    // Earlier ones than found may be in later partitions only where something began that early.
    const open = some.filter((day) => next === null || day.earliestStartedAt < next)
    const row: { startedAt: Date } | null = await db.boot.findFirst({
      where: {
        organizationId,
        receivedOn: { in: open.map(({ receivedOn }) => receivedOn) },
        startedAt: { gt: startedAt, ...(next ? { lt: next } : {}) },
        AND: where,
      },
      orderBy: { startedAt: 'asc' },
      select: { startedAt: true },
    })
    next = row?.startedAt ?? next
  }
  return next
}

/** Of starts: `from` is within, `until` is not. No gap is between one span and the next. */
type Spans = Generator<{ from: Date | null; until: Date | null }>

function* spansFromNewest(days: BootDayRow[], { before, since }: Options): Spans {
  let until = before
  const older = days.filter(({ receivedOn }) => before === null || receivedOn <= before)
  for (let index = 0, step = 0; index < older.length; step += 1) {
    index += spanDays[Math.min(step, spanDays.length - 1)] ?? 1
    const from = older[index - 1]?.receivedOn ?? null
    if (since && (from === null || from <= since)) break
    if (from === null) break
    yield { from, until }
    until = from
  }
  // Boots that started before the oldest day: of edges that were away, or whose clock is wrong.
  yield { from: since ?? null, until }
}

function* spansFromOldest(days: BootDayRow[], { before, since }: Options): Spans {
  let from = since ?? null
  const ends = days.map(({ receivedOn }) => new Date(receivedOn.getTime() + dayMs)).toReversed()
  const later = from === null ? ends : ends.filter((end) => since && end > since)
  for (let index = 0, step = 0; index < later.length; step += 1) {
    index += spanDays[Math.min(step, spanDays.length - 1)] ?? 1
    const until = later[index - 1] ?? null
    if (until === null || (before && until >= before)) break
    yield { from, until }
    from = until
  }
  yield { from, until: before }
}

interface Span {
  from: Date | null
  until: Date | null
  where: Prisma.BootWhereInput
  oldestFirst: boolean
  partitions: BootDayRow[]
  limit: number
}

async function readSpan(context: ReadContext, { from, until, where, oldestFirst, partitions, limit }: Span) {
  const startedAt = { ...(from ? { gte: from } : {}), ...(until ? { lt: until } : {}) }
  const rows: Awaited<ReturnType<typeof findBoots>> = []
  for (let index = 0; index < partitions.length; index += partitionsMax) {
    const days = partitions.slice(index, index + partitionsMax).map(({ receivedOn }) => receivedOn)
    rows.push(...(await findBoots(context, { where: { AND: [where, { startedAt }] }, oldestFirst, days, limit })))
  }
  rows.sort((a, b) => a.startedAt.getTime() - b.startedAt.getTime() || (a.id < b.id ? -1 : 1))
  return (oldestFirst ? rows : rows.reverse()).slice(0, limit)
}
