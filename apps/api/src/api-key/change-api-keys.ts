import type { z } from 'zod'
import { findPlaces } from '../access/find-place.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { may } from '../rules/actor.ts'
import { permissionsOf, roleHas } from '../rules/permissions.ts'
import { organizationPlace, type Place } from '../rules/place.ts'
import { newApiKeySecret } from './api-key-secret.ts'
import { creatorNames } from './list-api-keys.ts'
import { apiKeySelect, apiKeyViewOf } from './rows.ts'
import {
  type ApiKeyView,
  type apiKeyInput,
  apiKeysMax,
  apiKeyValidMs,
  type createApiKeyInput,
  type createdApiKey,
} from './schema.ts'

type Input = z.output<typeof createApiKeyInput>

/**
 * Throws `forbidden` for a key that could do more than its creator, and for API keys, which make no others; `not_found`
 * for its place; `invalid`, `conflict` for too many.
 */
export async function createApiKey(context: ServiceContext, input: Input): Promise<z.infer<typeof createdApiKey>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  if (actor.kind === 'api_key')
    throw new AppError('forbidden', { public: 'An API key cannot create API keys. Sign in as a person.' })
  const now = clock()
  if (input.expiresAt && new Date(input.expiresAt) <= now)
    throw new AppError('invalid', { public: 'expiresAt: This time has passed.' })
  await requireNoMoreThanOwn(context, input)
  if ((await db.apiKey.count({ where: { organizationId, revokedAt: null } })) >= apiKeysMax)
    throw new AppError('conflict', {
      public: `An organization can have at most ${apiKeysMax} API keys. Revoke one first.`,
    })
  const { secret, prefix, secretHash } = newApiKeySecret()
  const { name, role, farmId, siteId, collectionId, requestsPerMinute } = input
  const row = await db.apiKey.create({
    data: {
      organizationId,
      name,
      role,
      farmId,
      siteId,
      collectionId,
      requestsPerMinute,
      prefix,
      secretHash,
      permissions: [...new Set(input.permissions ?? [])],
      createdAt: now,
      createdByUserId: actor.userId,
      expiresAt: expiryOf(input, now),
    },
    select: apiKeySelect,
  })
  const view = apiKeyViewOf(row, actor.userName, now)
  await recordChange(context, { kind: 'api_key', id: view.id, name, before: null, after: auditOf(view) })
  return { ...view, secret }
}

function expiryOf({ expiresAt }: Input, now: Date): Date | null {
  if (expiresAt === undefined) return new Date(now.getTime() + apiKeyValidMs)
  return expiresAt === null ? null : new Date(expiresAt)
}

/**
 * Makes the actor the key's creator: it has his permissions from the next request on, and stays when the person who
 * created it leaves. Throws `not_found`; `conflict` for a revoked or expired key; `forbidden` for a key that could do
 * more than the actor, and for API keys.
 */
export async function takeOverApiKey(
  context: ServiceContext,
  { apiKeyId }: z.output<typeof apiKeyInput>,
): Promise<ApiKeyView> {
  const { db, clock, actor } = context
  if (actor.kind === 'api_key')
    throw new AppError('forbidden', { public: 'An API key cannot take over API keys. Sign in as a person.' })
  const where = ownRow(actor, apiKeyId)
  const row = await db.apiKey.findUnique({ where, select: apiKeySelect })
  if (!row) throw new AppError('not_found')
  const now = clock()
  const names = await creatorNames(db, { organizationId: actor.organizationId, rows: [row] })
  const before = apiKeyViewOf(row, names.get(row.createdByUserId ?? '') ?? null, now)
  if (before.state === 'revoked' || before.state === 'expired')
    throw new AppError('conflict', { public: `This API key is ${before.state}. Create another one instead.` })
  await requireNoMoreThanOwn(context, before)
  await db.apiKey.update({ where, data: { createdByUserId: actor.userId }, select: { id: true } })
  const after = apiKeyViewOf({ ...row, createdByUserId: actor.userId }, actor.userName, now)
  await recordChange(context, {
    kind: 'api_key',
    id: before.id,
    name: before.name,
    before: { createdBy: before.createdBy },
    after: { createdBy: after.createdBy },
  })
  return after
}

/** Refuses the key from the next request on, permanently. Revoking again changes nothing. Throws `not_found`. */
export async function revokeApiKey(
  context: ServiceContext,
  { apiKeyId }: z.output<typeof apiKeyInput>,
): Promise<ApiKeyView> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const now = clock()
  const { count } = await db.apiKey.updateMany({
    where: { organizationId, id: apiKeyId, revokedAt: null },
    data: { revokedAt: now },
  })
  const row = await db.apiKey.findUnique({ where: ownRow(actor, apiKeyId), select: apiKeySelect })
  if (!row) throw new AppError('not_found')
  const names = await creatorNames(db, { organizationId, rows: [row] })
  const view = apiKeyViewOf(row, names.get(row.createdByUserId ?? '') ?? null, now)
  if (count > 0)
    await recordChange(context, {
      kind: 'api_key',
      id: view.id,
      name: view.name,
      before: { revokedAt: null },
      after: { revokedAt: view.revokedAt },
    })
  return view
}

/** What a key may do, and where. */
type KeyRights = Pick<ApiKeyView, 'role' | 'farmId' | 'siteId' | 'collectionId' | 'permissions'>

async function requireNoMoreThanOwn({ db, actor }: ServiceContext, input: KeyRights): Promise<void> {
  const place = await placeOf(db, { organizationId: actor.organizationId, input })
  const wrong = input.permissions?.find((permission) => !roleHas(input.role, permission))
  if (wrong) throw new AppError('invalid', { public: `permissions: The role ${input.role} does not include ${wrong}.` })
  const beyond = (input.permissions ?? permissionsOf(input.role)).find((permission) => !may(actor, permission, place))
  if (beyond)
    throw new AppError('forbidden', {
      public: `The key would have permissions that you do not have: ${beyond}. Choose a smaller role, scope or set of permissions.`,
    })
}

async function placeOf(
  db: ServiceContext['db'],
  { organizationId, input }: { organizationId: string; input: KeyRights },
): Promise<Place> {
  for (const kind of ['farm', 'site', 'collection'] as const) {
    const id = input[`${kind}Id`]
    if (!id) continue
    const place = (await findPlaces(db, kind, { organizationId, ids: [id] })).get(id)
    if (!place) throw new AppError('not_found')
    return place
  }
  return organizationPlace
}

function auditOf({ role, farmId, siteId, collectionId, permissions, expiresAt, prefix }: ApiKeyView) {
  return { role, farmId, siteId, collectionId, permissions, expiresAt, prefix }
}
