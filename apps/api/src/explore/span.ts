import { AppError } from '../errors/app-error.ts'
import { dayMs } from '../rules/utc-day.ts'
import type { Span } from './read-sample.ts'
import { spanDaysDefault, spanDaysMax } from './schema.ts'

/** The asked span, or the last days. Throws `invalid` for one that is empty or too long. */
export function spanOf({ since, until }: { since?: string | undefined; until?: string | undefined }, now: Date): Span {
  const end = until === undefined ? now : new Date(until)
  const begin = since === undefined ? new Date(end.getTime() - spanDaysDefault * dayMs) : new Date(since)
  if (begin >= end) throw invalid('since', 'The period ends before it begins.')
  if (end.getTime() - begin.getTime() > spanDaysMax * dayMs)
    throw invalid('since', `The period is longer than ${spanDaysMax} days. Choose a later start or an earlier end.`)
  return { since: begin, until: end }
}

export function invalid(field: string, message: string): AppError {
  return new AppError('invalid', { public: message, fields: [{ in: 'query', field, message }] })
}
