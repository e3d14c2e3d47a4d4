import { quotaRefusalIn, quotaSentence } from '../rules/quotas.ts'
import { AppError } from './app-error.ts'

/**
 * PostgreSQL is away, starting, stopping, or too busy: SQLSTATEs, and the codes of Node and Prisma. Trying again helps.
 */
const unavailableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'P1001',
  'P1002',
  'P1008',
  'P1017',
  'P2024',
  'P2028',
  'P2034',
  '40001',
  '40P01',
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '08000',
  '08003',
  '08006',
])
/** A row that others name is not removed: SQLSTATEs, and Prisma's code. */
const inUseCodes = new Set(['P2003', '23001', '23503'])
const unavailableTexts = /terminated unexpectedly|Can't reach database server|server has closed the connection/i
const rawQueryCode = /Raw query failed\. Code: `(\w+)`/
/** Raised by the triggers `refuse_needed_version` and `require_live_version`. */
const neededText = /the version is needed: ([\w ]+)/
const trashedVersionText = /the version of this \w+ is in the trash/
/** Raised by the trigger `live_parent`. */
const trashedText = /the \w+ of this \w+ is in the trash/
const causeDepthMax = 6

/** Any thrown value as one row of the error table; what we did not foresee is `internal`. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  for (let cause = error, depth = 0; cause instanceof Error && depth < causeDepthMax; depth++) {
    if (cause instanceof AppError) return cause
    if (inUseCodes.has(codeOf(cause)))
      return new AppError('conflict', {
        internal: cause.message,
        public: 'Another object still uses it, such as a collection or a boot menu.',
        cause: error,
      })
    const need = neededText.exec(cause.message)?.[1]
    if (need !== undefined)
      return new AppError('conflict', {
        internal: cause.message,
        public: `The version cannot be deleted: ${need}.`,
        cause: error,
      })
    if (trashedVersionText.test(cause.message))
      return new AppError('conflict', {
        internal: cause.message,
        public: 'The version was deleted in the meantime. Choose another one, or restore it from the trash.',
        cause: error,
      })
    if (trashedText.test(cause.message))
      return new AppError('conflict', {
        internal: cause.message,
        public: 'Its parent object was deleted in the meantime.',
        cause: error,
      })
    const refusal = quotaRefusalIn(cause.message)
    if (refusal)
      return new AppError('quota_exceeded', {
        internal: cause.message,
        public: quotaSentence(refusal),
        extra: { quota: refusal.quota, used: refusal.used, allowed: refusal.allowed },
        cause: error,
      })
    if (isUnavailable(cause)) return new AppError('unavailable', { internal: cause.message, cause: error })
    cause = cause.cause
  }
  const internal = error instanceof Error ? error.message : String(error)
  return new AppError('internal', { internal, cause: error })
}

function isUnavailable(error: Error): boolean {
  return unavailableCodes.has(codeOf(error)) || unavailableTexts.test(error.message)
}

function codeOf(error: Error): string {
  // For raw statements Prisma has one code for all, and quotes PostgreSQL's message.
  const stated = rawQueryCode.exec(error.message)?.[1]
  return stated ?? ('code' in error && typeof error.code === 'string' ? error.code : '')
}
