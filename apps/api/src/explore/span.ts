import { type TimeSpan, timeSpanOf } from '../context/time-span.ts'
import { AppError } from '../errors/app-error.ts'
import { spanDaysDefault, spanDaysMax } from './schema.ts'

/** The asked span, or the last days. Throws `invalid` for one that is empty or too long. */
export function spanOf(asked: { since?: string | undefined; until?: string | undefined }, now: Date): TimeSpan {
  return timeSpanOf(asked, { now, daysDefault: spanDaysDefault, daysMax: spanDaysMax })
}

export function invalid(field: string, message: string): AppError {
  return new AppError('invalid', { public: message, fields: [{ in: 'query', field, message }] })
}
