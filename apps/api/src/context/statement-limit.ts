import { AppError } from '../errors/app-error.ts'
import type { DbOrTransaction } from './service-context.ts'

/** PostgreSQL's `query_canceled`. */
const cancelled = '57014'

interface StatementLimit<T> {
  /** For each statement until the transaction ends. */
  limitMs: number
  /** For people: what to ask for instead. */
  tooLong: string
  work: () => Promise<T>
}

/** Ends statements that take too long: the database has other work. Throws `unavailable`. */
export async function withStatementLimit<T>(
  db: DbOrTransaction,
  { limitMs, tooLong, work }: StatementLimit<T>,
): Promise<T> {
  try {
    // What is asked here reads a thousand boots or a million, by its parameters: each statement has its own plan.
    await db.$executeRaw`select set_config('statement_timeout', ${String(limitMs)}, true),
      set_config('plan_cache_mode', 'force_custom_plan', true)`
    return await work()
  } catch (cause) {
    if (!isCancelled(cause)) throw cause
    throw new AppError('unavailable', { public: tooLong, cause })
  }
}

function isCancelled(error: unknown): boolean {
  return error instanceof Error && (Reflect.get(error, 'code') === cancelled || error.message.includes(cancelled))
}
