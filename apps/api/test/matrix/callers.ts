import { randomUUID } from 'node:crypto'
import { newApiKeySecret } from '../../src/api-key/api-key-secret.ts'
import type { Grant } from '../../src/rules/actor.ts'
import type { Role } from '../../src/rules/permissions.ts'
import { organizationPlace, type Place } from '../../src/rules/place.ts'
import type { TestApi } from '../test-api.ts'
import { sessionCookie, signInAs } from '../test-tenant.ts'

/** Somebody who asks, and the one grant that they have in the organization that they act in. */
export interface Caller {
  name: string
  headers: Record<string, string>
  organizationId: string
  grant: Grant
}

export async function person(
  api: TestApi,
  organizationId: string,
  { role, scope = organizationPlace, name = role }: { role: Role; scope?: Place; name?: string },
): Promise<Caller> {
  const user = await api.db.user.create({
    data: { name: 'Somebody', email: `${randomUUID()}@example.test`, emailVerified: true },
    select: { id: true },
  })
  const userId = user.id
  await api.db.membership.create({ data: { organizationId, userId } })
  await api.db.roleGrant.create({ data: { organizationId, userId, role, ...narrowest(scope) } })
  const headers = { cookie: await sessionCookie(api, userId) }
  return { name, headers, organizationId, grant: { role, scope } }
}

/** An API key of an owner, who gave it this role. */
export async function apiKey(api: TestApi, organizationId: string, role: Role): Promise<Caller> {
  const userId = (
    await api.db.user.create({
      data: { name: 'Somebody', email: `${randomUUID()}@example.test`, emailVerified: true },
      select: { id: true },
    })
  ).id
  await api.db.membership.create({ data: { organizationId, userId } })
  await api.db.roleGrant.create({ data: { organizationId, userId, role: 'owner' } })
  const { secret, prefix, secretHash } = newApiKeySecret()
  const key = { name: `Key of ${role}`, role, prefix, secretHash, requestsPerMinute: 6_000 }
  await api.db.apiKey.create({
    data: { organizationId, ...key, createdByUserId: userId, createdAt: api.clock.now },
  })
  const headers = { authorization: `Bearer ${secret}` }
  return { name: `API key, ${role}`, headers, organizationId, grant: { role, scope: organizationPlace } }
}

/** A key of a service account that has this role there; the key itself is bounded by nothing. */
export async function serviceAccount(
  api: TestApi,
  organizationId: string,
  { role, scope = organizationPlace, name = `service account, ${role}` }: { role: Role; scope?: Place; name?: string },
): Promise<Caller> {
  const userId = randomUUID()
  const email = `${userId}@service-account.invalid`
  await api.db.user.create({ data: { id: userId, name: 'A program', email, serviceOf: organizationId } })
  await api.db.membership.create({ data: { organizationId, userId } })
  await api.db.roleGrant.create({ data: { organizationId, userId, role, ...narrowest(scope) } })
  const { secret, prefix, secretHash } = newApiKeySecret()
  const key = { name: `Key of ${name}`, role: 'owner' as const, prefix, secretHash, requestsPerMinute: 6_000 }
  await api.db.apiKey.create({ data: { organizationId, ...key, createdByUserId: userId, createdAt: api.clock.now } })
  return { name, headers: { authorization: `Bearer ${secret}` }, organizationId, grant: { role, scope } }
}

/** Headers of those who are nobody here, each in their way. */
export async function nobodies(api: TestApi, organizationId: string): Promise<Record<string, Record<string, string>>> {
  const revoked = await signInAs(api, organizationId, 'owner')
  const [token = ''] = decodeURIComponent(revoked.slice(revoked.indexOf('=') + 1)).split('.')
  await api.db.session.delete({ where: { token } })
  const { secret } = newApiKeySecret()
  return {
    anonymous: {},
    'without membership': { cookie: await signInAs(api, organizationId, null) },
    'a revoked session': { cookie: revoked },
    'an unknown API key': { authorization: `Bearer ${secret}` },
  }
}

/** A grant is kept at the lowest place that it names. */
function narrowest({ farmId, siteId, collectionId }: Place) {
  if (collectionId) return { collectionId }
  if (siteId) return { siteId }
  return farmId ? { farmId } : {}
}
