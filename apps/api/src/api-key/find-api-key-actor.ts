import { inOrganization } from '@bootfarm/db'
import { type DbOrTransaction, ownRow, type PlatformContext } from '../context/service-context.ts'
import { type Actor, type Grant, withinGrants } from '../rules/actor.ts'
import type { Permission } from '../rules/permissions.ts'
import { covers, organizationPlace, scopePlaceOf } from '../rules/place.ts'
import { readKeyOwner } from '../session/public.ts'
import { hashApiKey } from './api-key-secret.ts'
import { placeSelect } from './rows.ts'
import { apiKeyPrefix } from './schema.ts'

export interface RateLimit {
  perMinute: number
  remaining: number
  /** Until the count starts again. */
  resetsInSeconds: number
  isExceeded: boolean
}

interface IdentityRow {
  organization_id: string
  organization_name: string
  api_key_id: string
  user_id: string
  user_name: string
  user_email: string
  requests: number
  requests_per_minute: number
  resets_in_seconds: number
}

/**
 * Returns the actor with this secret, and counts the request for all API processes. Null for a key that is unknown,
 * expired or revoked, whose place is in the trash, or whose owner has no role any more. The key's permissions are read
 * at each request: they shrink with its owner's.
 */
export async function findApiKeyActor(
  { db, clock }: PlatformContext,
  secret: string,
): Promise<{ actor: Actor; rateLimit: RateLimit } | null> {
  if (!secret.startsWith(apiKeyPrefix)) return null
  const [row] = await db.$queryRaw<IdentityRow[]>`
    select organization_id::text, organization_name, api_key_id::text, user_id::text, user_name, user_email, requests,
      requests_per_minute, resets_in_seconds from api_key_identity(${hashApiKey(secret)}, ${clock()})`
  if (!row) return null
  const organizationId = row.organization_id
  const rights = await inOrganization(db, organizationId, (transaction) =>
    readKeyRights(transaction, { organizationId, apiKeyId: row.api_key_id, userId: row.user_id, now: clock() }),
  )
  if (!rights) return null
  return {
    actor: {
      kind: rights.isOfServiceAccount ? 'service_account' : 'api_key',
      userId: row.user_id,
      userName: rights.name,
      userEmail: row.user_email,
      apiKeyId: row.api_key_id,
      organizationId,
      organizationName: row.organization_name,
      grants: rights.grants,
      onlyPermissions: rights.onlyPermissions,
    },
    rateLimit: {
      perMinute: row.requests_per_minute,
      remaining: Math.max(0, row.requests_per_minute - row.requests),
      resetsInSeconds: row.resets_in_seconds,
      isExceeded: row.requests > row.requests_per_minute,
    },
  }
}

interface Rights {
  /** The key's, or that of the service account that owns it. */
  name: string
  isOfServiceAccount: boolean
  grants: Grant[]
  onlyPermissions: ReadonlySet<Permission> | null
}

/** Null for a key that is expired or revoked, whose place is in the trash, or whose owner has no role any more. */
export async function readKeyRights(
  db: DbOrTransaction,
  { organizationId, apiKeyId, userId, now }: { organizationId: string; apiKeyId: string; userId: string; now: Date },
): Promise<Rights | null> {
  const inForce = { revokedAt: null, OR: [{ expiresAt: null }, { expiresAt: { gt: now } }] }
  const key = await db.apiKey.findUnique({
    where: { ...ownRow({ organizationId }, apiKeyId), ...inForce },
    select: { name: true, role: true, permissions: true, ...placeSelect },
  })
  if (!key) return null
  const scope = scopePlaceOf(key)
  // Its site or collection is in the trash, and with it what the key may do there. Without its farm's id the scope
  // would look like the organization's.
  if (scope.farmId === null && !covers(scope, organizationPlace)) return null
  const owner = await readKeyOwner(db, { organizationId, userId })
  const grants = owner ? withinGrants({ role: key.role, scope }, owner.grants) : []
  if (!owner || grants.length === 0) return null
  return {
    name: owner.serviceName === null ? `API key ${key.name}` : `service account ${owner.serviceName}`,
    isOfServiceAccount: owner.serviceName !== null,
    grants,
    onlyPermissions: key.permissions.length > 0 ? new Set(key.permissions as Permission[]) : null,
  }
}
