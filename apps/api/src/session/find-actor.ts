import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import type { Actor, Grant } from '../rules/actor.ts'
import type { Person } from '../rules/person.ts'

/** A session that has not ended, as it is at this moment. */
export interface SignedIn {
  person: Person
  /**
   * In the organization that the session works in, otherwise the one chosen last, otherwise the one joined first; null
   * for a person without one.
   */
  actor: Actor | null
  /** It has expired, or lasts shorter than was requested. */
  isDue: boolean
}

interface SignedInRow {
  session_id: string
  is_due: boolean
  user_id: string
  user_name: string
  user_email: string
  organization_id: string | null
  organization_name: string | null
  grants: Grant[] | null
}

/**
 * Returns the person who is signed in by a session's token, with the current roles; null for a token of no session. One
 * statement and nothing cached between requests: an ended session or a changed role takes effect with the next request,
 * in each API process.
 */
export async function findSignedIn(
  { db }: PlatformContext,
  { token, dueBeforeSeconds }: { token: string; dueBeforeSeconds: number },
): Promise<SignedIn | null> {
  const [row] = await db.$queryRaw<SignedInRow[]>`
    select session.id::text as session_id, session.expires_at <= now() + make_interval(secs => ${dueBeforeSeconds}) as is_due,
      "user".id::text as user_id, "user".name as user_name, "user".email as user_email,
      own.organization_id::text, own.organization_name, grants_of("user".id, own.organization_id) as grants
    from session join "user" on "user".id = session.user_id
    left join lateral (
      select * from memberships_of("user".id) with ordinality as membership (organization_id, slug, organization_name, place)
      order by organization_id is not distinct from session.active_organization_id desc,
        organization_id is not distinct from "user".last_organization_id desc, place limit 1
    ) as own on true
    where session.token = ${token}`
  if (!row) return null
  const { user_id: userId, user_name: name, user_email: email, session_id: sessionId } = row
  return { person: { userId, name, email, sessionId }, actor: actorOf(row), isDue: row.is_due }
}

function actorOf(row: SignedInRow): Actor | null {
  const { organization_id: organizationId, organization_name: organizationName } = row
  if (organizationId === null || organizationName === null) return null
  return {
    kind: 'person',
    userId: row.user_id,
    userName: row.user_name,
    userEmail: row.user_email,
    apiKeyId: null,
    organizationId,
    organizationName,
    grants: row.grants ?? [],
    onlyPermissions: null,
  }
}

/** The person's roles, each with where it holds; none for somebody who is not a member. */
export async function readGrants(
  db: DbOrTransaction,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<Grant[]> {
  const [row] = await db.$queryRaw<{ grants: Grant[] }[]>`
    select grants_of(${userId}::uuid, ${organizationId}::uuid) as grants`
  return row?.grants ?? []
}

interface KeyOwner {
  grants: Grant[]
  /** The name of a service account; null for a person. */
  serviceName: string | null
}

/** The owner of an API key, with the roles of now; null where that account is gone. */
export async function readKeyOwner(
  db: DbOrTransaction,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<KeyOwner | null> {
  const [row] = await db.$queryRaw<KeyOwner[]>`
    select grants_of(id, ${organizationId}::uuid) as grants,
      case when service_of is not null then name end as "serviceName"
    from "user" where id = ${userId}::uuid`
  return row ?? null
}
