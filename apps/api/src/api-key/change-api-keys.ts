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
import { type ApiKeyView, type apiKeyInput, apiKeysMax, type createApiKeyInput, type createdApiKey } from './schema.ts'

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
      expiresAt: input.expiresAt ? new Date(input.expiresAt) : null,
    },
    select: apiKeySelect,
  })
  const view = apiKeyViewOf(row, actor.userName, now)
  await recordChange(context, { kind: 'api_key', id: view.id, name, before: null, after: auditOf(view) })
  return { ...view, secret }
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

async function requireNoMoreThanOwn({ db, actor }: ServiceContext, input: Input): Promise<void> {
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
  { organizationId, input }: { organizationId: string; input: Input },
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
