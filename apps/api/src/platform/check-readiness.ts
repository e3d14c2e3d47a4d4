import type { PlatformContext } from '../context/service-context.ts'

/** One condition for serving requests. */
export interface ReadinessCheck {
  part: 'database' | 'migrations' | 'notifications' | 'jobs' | 'process'
  /** Resolves with the problem in a sentence for people, or with null if there is none. */
  problemOf(): Promise<string | null>
}

interface NotReady {
  part: ReadinessCheck['part']
  detail: string
}

/** A balancer asks every few seconds, and waits no longer than that. */
const checkLimitMs = 2_000

/**
 * Returns what is not ready, each within the limit; empty if everything is. The reasons never reach the caller: they
 * are in the log.
 */
export async function checkReadiness(
  checks: ReadinessCheck[],
  onError: (part: string, error: unknown) => void,
): Promise<NotReady[]> {
  const found = await Promise.all(
    checks.map(async ({ part, problemOf }) => {
      const detail = await within(checkLimitMs, problemOf()).catch((error: unknown) => {
        onError(part, error)
        return `does not answer within ${checkLimitMs / 1000} s, or refuses`
      })
      return detail === null ? [] : [{ part, detail }]
    }),
  )
  return found.flat()
}

/** Returns whether the database answers. */
export async function databaseProblem({ db }: Pick<PlatformContext, 'db'>): Promise<string | null> {
  await db.$queryRaw`select 1`
  return null
}

/** A database that is ahead is ready: the release before runs on while another one is rolled out. */
export async function migrationsProblem({ db }: Pick<PlatformContext, 'db'>, names: string[]): Promise<string | null> {
  const rows = await db.$queryRaw<{ name: string }[]>`select name from applied_migrations() as name`
  const applied = new Set(rows.map(({ name }) => name))
  const missing = names.filter((name) => !applied.has(name))
  if (missing.length === 0) return null
  return `${missing.length} of this build are not applied, the first of them ${missing[0]}: run \`migrate\``
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('too late')), limitMs)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
