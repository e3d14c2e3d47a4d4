import { AppError } from '../errors/app-error.ts'
import { dayMs } from '../rules/utc-day.ts'

export interface TimeSpan {
  since: Date
  until: Date
}

interface Asked {
  since?: string | undefined
  until?: string | undefined
}

interface Limits {
  now: Date
  daysDefault: number
  daysMax: number
}

/** The asked span, or the last days. Throws `invalid` for one that is empty or too long. */
export function timeSpanOf({ since, until }: Asked, { now, daysDefault, daysMax }: Limits): TimeSpan {
  const end = until === undefined ? now : new Date(until)
  const begin = since === undefined ? new Date(end.getTime() - daysDefault * dayMs) : new Date(since)
  if (begin >= end) throw invalid('The period ends before it begins.')
  if (end.getTime() - begin.getTime() > daysMax * dayMs)
    throw invalid(`The period is longer than ${daysMax} days. Choose a later start or an earlier end.`)
  return { since: begin, until: end }
}

function invalid(message: string): AppError {
  return new AppError('invalid', { public: message, fields: [{ in: 'query', field: 'since', message }] })
}
