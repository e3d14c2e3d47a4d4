import type { PlatformContext } from '../context/service-context.ts'

/**
 * Counts one attempt by this key and returns whether it is within `countMax` of the window; holds across all API
 * processes.
 */
export async function takeAttempt(
  { db }: Pick<PlatformContext, 'db'>,
  { key, countMax, windowMs }: { key: string; countMax: number; windowMs: number },
): Promise<boolean> {
  // By the database's clock: the processes of several machines agree on it.
  const [row] = await db.$queryRaw<{ count: number }[]>`
    insert into rate_limit as kept (id, key, count, last_request)
    values (gen_random_uuid(), ${key}, 1, floor(extract(epoch from now()) * 1000)::bigint)
    on conflict (key) do update set
      count = case when kept.last_request <= excluded.last_request - ${windowMs}::bigint then 1 else kept.count + 1 end,
      last_request =
        case when kept.last_request <= excluded.last_request - ${windowMs}::bigint then excluded.last_request
        else kept.last_request end
    returning count`
  return (row?.count ?? 0) <= countMax
}

/** Longer than every window, those of better-auth included. */
const keptMs = 86_400_000

/** Forgets counts whose window is over: an address that guessed once is not kept. */
export async function dropOldAttempts({ db }: Pick<PlatformContext, 'db'>): Promise<void> {
  await db.$executeRaw`
    delete from rate_limit where last_request < floor(extract(epoch from now()) * 1000)::bigint - ${keptMs}::bigint`
}
