import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import type { EventNumbering } from './number-events.ts'
import { type EventSort, eventSort } from './schema.ts'

/** The incarnation of the database, the number of the last event, and the order that both belong to. */
const cursorKey = z.tuple([z.int(), z.int().nonnegative(), eventSort])

export function cursorAfter(number: number, { incarnation }: EventNumbering, sort: EventSort): string {
  return Buffer.from(JSON.stringify([incarnation, number, sort])).toString('base64url')
}

/**
 * Returns the number that a page continues after. Throws `invalid` for what is no cursor of this order, and
 * `cursor_expired` where the list would skip events that nobody could notice.
 */
export function numberOf(cursor: string, numbering: EventNumbering, sort: EventSort): number {
  const parsed = cursorKey.safeParse(jsonOf(cursor))
  if (!parsed.success) throw refused('invalid', 'The cursor does not belong to this list.')
  const [incarnation, number, made] = parsed.data
  if (made !== sort)
    throw refused('invalid', `The cursor belongs to the list with sort=${made}, not ${sort}. Start without a cursor.`)
  if (incarnation !== numbering.incarnation || number > numbering.lastNumber)
    throw refused(
      'cursor_expired',
      'The database was restored from a backup after this cursor was made. Start without a cursor, with `since`.',
    )
  if (sort === 'number' && number < numbering.removedNumber)
    throw refused(
      'cursor_expired',
      'Events after this cursor are so old that they were removed. Start without a cursor; with `since` for a part.',
    )
  return number
}

function refused(code: 'invalid' | 'cursor_expired', message: string): AppError {
  return new AppError(code, { public: message, fields: [{ in: 'query', field: 'cursor', message }] })
}

function jsonOf(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return null
  }
}
