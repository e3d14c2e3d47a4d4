import type { Checks } from '../../access/checks.ts'
import { readKeyRights } from '../../api-key/find-api-key-actor.ts'
import type { DbOrTransaction } from '../../context/service-context.ts'
import type { Actor, Grant } from '../../rules/actor.ts'
import type { Clock } from '../../rules/clock.ts'

interface Signed {
  actor: Actor
  sessionId: string | null
}

/**
 * Looks up callers of one organization whose connection stays open: each with the roles of now, or null where the
 * session or the key has ended, or no role is left. One statement for all sessions, and one for each key.
 */
export async function currentActors(
  db: DbOrTransaction,
  { clock, checks }: { clock: Clock; checks: Checks },
  signed: Signed[],
): Promise<(Actor | null)[]> {
  const [first] = signed
  if (!first) return []
  const { organizationId } = first.actor
  const sessionIds = [...new Set(signed.flatMap(({ sessionId }) => sessionId ?? []))]
  const sessions = await db.$queryRaw<{ id: string; grants: Grant[] }[]>`
    select id::text, grants_of(user_id, ${organizationId}::uuid) as grants from session
    where id = any(${sessionIds}::uuid[]) and expires_at > now()`
  const grantsOf = new Map(sessions.map(({ id, grants }) => [id, grants]))
  const keys = new Map<string, Awaited<ReturnType<typeof readKeyRights>>>()
  for (const { apiKeyId, userId } of signed.map(({ actor }) => actor))
    if (apiKeyId && userId && !keys.has(apiKeyId))
      keys.set(apiKeyId, await readKeyRights(db, { organizationId, apiKeyId, userId, now: clock() }))
  return signed.map(({ actor, sessionId }) => {
    const key = keys.get(actor.apiKeyId ?? '')
    const grants = (sessionId ? grantsOf.get(sessionId) : key?.grants) ?? []
    if (grants.length === 0) return null
    const onlyPermissions = key ? key.onlyPermissions : actor.onlyPermissions
    return checks.actorOf({ ...actor, grants, onlyPermissions })
  })
}
