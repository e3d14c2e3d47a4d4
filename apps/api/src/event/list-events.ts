import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleEvents } from '../access/visible.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { pingType } from '../webhook/schema.ts'
import { cursorAfter, numberOf } from './event-cursor.ts'
import { type EventNumbering, numberEvents } from './number-events.ts'
import type { EventSort, EventView, eventInput, eventListInput, eventPage } from './schema.ts'

/** Throws `invalid`, and `cursor_expired` where the cursor is from before a restore or events after it were removed. */
export async function listEvents(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  input: z.output<typeof eventListInput>,
): Promise<z.infer<typeof eventPage>> {
  const { organizationId } = actor
  const { sort, cursor, limit } = input
  const numbering = await numberEvents(db, organizationId)
  const after = cursor ? beyond(numberOf(cursor, numbering, sort), sort) : {}
  const bounds = await timeBounds(db, organizationId, input)
  const rows = await db.webhookEvent.findMany({
    where: {
      organizationId,
      number: { not: null },
      AND: [visibleEvents(actor), filterOf(input), after, ...bounds],
    },
    orderBy: { number: sort === 'number' ? 'asc' : 'desc' },
    take: limit + 1,
    select: eventSelect,
  })
  const items = rows.slice(0, limit).flatMap((row) => eventViewOf(row) ?? [])
  return { items, ...cursorsOf(items, { sort, numbering, isFull: rows.length > limit }) }
}

function beyond(after: number, sort: EventSort): Prisma.WebhookEventWhereInput {
  return { number: sort === 'number' ? { gt: after } : { lt: after } }
}

/**
 * Longer than any transaction that writes an event (packages/db/src/client.ts ends it after seconds), and than any
 * difference between the clocks of API processes. Of two events that are this far apart, the later one has the higher
 * number.
 */
const apartMs = 3_600_000

/**
 * Bounds of the numbers of events from `since` on and before `until`. They let PostgreSQL start in the index of numbers
 * near that time, instead of at the list's end; the filter itself is by time.
 */
async function timeBounds(
  db: ServiceContext['db'],
  organizationId: string,
  { since, until }: Pick<z.output<typeof eventListInput>, 'since' | 'until'>,
): Promise<Prisma.WebhookEventWhereInput[]> {
  const numberNear = async (createdAt: Prisma.DateTimeFilter, direction: Prisma.SortOrder) => {
    const row = await db.webhookEvent.findFirst({
      where: { organizationId, createdAt, number: { not: null } },
      orderBy: { createdAt: direction },
      select: { number: true },
    })
    return row?.number ?? null
  }
  const [first, last] = await Promise.all([
    since ? numberNear({ lt: shifted(since, -apartMs) }, 'desc') : null,
    until ? numberNear({ gte: shifted(until, apartMs) }, 'asc') : null,
  ])
  return [first === null ? {} : { number: { gt: first } }, last === null ? {} : { number: { lt: last } }]
}

/** Within the years that PostgreSQL reads as JavaScript writes them. */
function shifted(instant: string, byMs: number): Date {
  return new Date(Math.min(Math.max(Date.parse(instant) + byMs, 0), Date.UTC(9999, 11, 31)))
}

interface ReadPage {
  sort: EventSort
  numbering: EventNumbering
  /** There are further events. */
  isFull: boolean
}

/** Events that were numbered since `numbering` was read may be on the page, and then all that are lower. */
function cursorsOf(items: EventView[], { sort, numbering, isFull }: ReadPage) {
  const numbers = items.map(({ number }) => number)
  const last = numbers.at(-1)
  const nextCursor = isFull && last !== undefined ? cursorAfter(last, numbering, sort) : null
  if (nextCursor && sort === 'number') return { nextCursor, resumeCursor: nextCursor }
  const highest = Math.max(numbering.lastNumber, ...numbers)
  return { nextCursor, resumeCursor: cursorAfter(highest, numbering, 'number') }
}

/** Throws `not_found`; `unavailable` while very many events wait for their numbers. */
export async function getEvent(
  { db, actor }: ServiceContext,
  { eventId }: z.output<typeof eventInput>,
): Promise<EventView> {
  const read = () =>
    db.webhookEvent.findUnique({
      where: { ...ownRow(actor, eventId), type: { not: pingType }, AND: [visibleEvents(actor)] },
      select: eventSelect,
    })
  const row = await read()
  if (!row) throw new AppError('not_found')
  const known = eventViewOf(row)
  if (known) return known
  await numberEvents(db, actor.organizationId)
  const numbered = await read()
  const view = numbered && eventViewOf(numbered)
  if (!view) throw new AppError('unavailable', { public: 'This event has no number yet. Try again in some seconds.' })
  return view
}

function filterOf(input: z.output<typeof eventListInput>): Prisma.WebhookEventWhereInput {
  const { types, since, until, farmId, siteId, collectionId, deviceId, edgeId, vdiskId } = input
  return {
    AND: [
      types ? { type: { in: types } } : {},
      since ? { createdAt: { gte: new Date(since) } } : {},
      until ? { createdAt: { lt: new Date(until) } } : {},
      farmId ? { farmId } : {},
      siteId ? { siteId } : {},
      collectionId ? { collectionId } : {},
      deviceId ? { deviceId } : {},
      edgeId ? { edgeId } : {},
      vdiskId ? { vdiskId } : {},
    ],
  }
}

const eventSelect = {
  id: true,
  organizationId: true,
  number: true,
  type: true,
  payload: true,
  createdAt: true,
  farmId: true,
  siteId: true,
  collectionId: true,
  deviceId: true,
  edgeId: true,
  vdiskId: true,
} satisfies Prisma.WebhookEventSelect
type EventRow = Prisma.WebhookEventGetPayload<{ select: typeof eventSelect }>

/** Null for an event that has no number yet. */
function eventViewOf({ payload, createdAt, number, ...row }: EventRow): EventView | null {
  if (number === null) return null
  return { ...row, number: Number(number), timestamp: createdAt.toISOString(), data: dataOf(payload) }
}

/** The rest of a message's payload is in columns. */
function dataOf(payload: Prisma.JsonValue): EventView['data'] {
  const data = typeof payload === 'object' && payload && 'data' in payload ? payload.data : null
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {}
}
