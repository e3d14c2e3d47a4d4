import type { z } from 'zod'
import { findPlaces } from '../access/find-place.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { may, withinGrants } from '../rules/actor.ts'
import { permissionsOf, roleHas } from '../rules/permissions.ts'
import { organizationPlace, type Place } from '../rules/place.ts'
import { readKeyOwner } from '../session/public.ts'
import { newApiKeySecret } from './api-key-secret.ts'
import { keyOwners } from './list-api-keys.ts'
import { type ApiKeyRow, apiKeySelect, apiKeyViewOf } from './rows.ts'
import {
  type ApiKeyView,
  type apiKeyInput,
  apiKeysMax,
  apiKeyValidMs,
  type createApiKeyInput,
  type createdApiKey,
  type rotateApiKeyInput,
} from './schema.ts'

type Input = z.output<typeof createApiKeyInput>
type Created = z.infer<typeof createdApiKey>

const hourMs = 3_600_000

/**
 * Makes a key of the actor, or of a service account. Throws `forbidden` for a key that could do more than the actor,
 * and for API keys, which make no others; `not_found` for its place or owner; `invalid`, `conflict` for too many.
 */
export async function createApiKey(context: ServiceContext, input: Input): Promise<Created> {
  const { clock, actor } = context
  requirePerson(context, 'create')
  const now = clock()
  if (input.expiresAt && new Date(input.expiresAt) <= now)
    throw new AppError('invalid', { public: 'expiresAt: This time has passed.' })
  const place = await requireNoMoreThanOwn(context, input)
  const { serviceAccountId, expiresAt: _, ...fields } = input
  if (serviceAccountId) await requireServiceAccount(context, { serviceAccountId, role: input.role, place })
  return insertKey(context, {
    ...fields,
    permissions: [...new Set(input.permissions ?? [])],
    createdByUserId: serviceAccountId ?? actor.userId,
    expiresAt: expiryOf(input, now),
  })
}

function requirePerson({ actor }: ServiceContext, verb: string): void {
  if (actor.kind !== 'person')
    throw new AppError('forbidden', { public: `An API key cannot ${verb} API keys. Sign in as a person.` })
}

/** Throws `not_found`; `invalid` for one without a role where the key is to have one. */
async function requireServiceAccount(
  { db, actor: { organizationId } }: ServiceContext,
  { serviceAccountId, role, place }: { serviceAccountId: string; role: Input['role']; place: Place },
): Promise<void> {
  const member = await db.membership.findUnique({
    where: { organizationId_userId: { organizationId, userId: serviceAccountId } },
    select: { disabledAt: true, user: { select: { serviceOf: true } } },
  })
  if (!member?.user.serviceOf) throw new AppError('not_found')
  if (member.disabledAt)
    throw new AppError('conflict', { public: 'This service account is disabled. Enable it first.' })
  const owner = await readKeyOwner(db, { organizationId, userId: serviceAccountId })
  if (withinGrants({ role, scope: place }, owner?.grants ?? []).length === 0)
    throw new AppError('invalid', {
      public: 'The service account has no role in this scope. Choose another scope, or grant it a role there first.',
    })
}

function expiryOf({ expiresAt }: Input, now: Date): Date | null {
  if (expiresAt === undefined) return new Date(now.getTime() + apiKeyValidMs)
  return expiresAt === null ? null : new Date(expiresAt)
}

type NewKey = Omit<Input, 'serviceAccountId' | 'expiresAt' | 'permissions'> &
  Pick<ApiKeyRow, 'permissions' | 'createdByUserId' | 'expiresAt'>

/** Throws `conflict` for too many, `quota_exceeded`. */
async function insertKey(context: ServiceContext, fields: NewKey): Promise<Created> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  if ((await db.apiKey.count({ where: { organizationId, revokedAt: null } })) >= apiKeysMax)
    throw new AppError('conflict', {
      public: `An organization can have at most ${apiKeysMax} API keys. Revoke one first.`,
    })
  const { secret, prefix, secretHash } = newApiKeySecret()
  const now = clock()
  const row = await db.apiKey.create({
    data: { organizationId, ...fields, prefix, secretHash, createdAt: now },
    select: apiKeySelect,
  })
  const view = await viewOf(context, row)
  await recordChange(context, { kind: 'api_key', id: view.id, name: view.name, before: null, after: auditOf(view) })
  return { ...view, secret }
}

async function viewOf({ db, clock, actor: { organizationId } }: ServiceContext, row: ApiKeyRow): Promise<ApiKeyView> {
  const owners = await keyOwners(db, { organizationId, rows: [row] })
  return apiKeyViewOf(row, owners.get(row.createdByUserId ?? '') ?? null, clock())
}

/**
 * Throws `not_found`; `conflict` for a revoked or expired key; `forbidden` for a key that could do more than the actor.
 */
async function findUsableKey(context: ServiceContext, apiKeyId: string): Promise<{ row: ApiKeyRow; view: ApiKeyView }> {
  const { db, actor } = context
  const row = await db.apiKey.findUnique({ where: ownRow(actor, apiKeyId), select: apiKeySelect })
  if (!row) throw new AppError('not_found')
  const view = await viewOf(context, row)
  if (view.state === 'revoked' || view.state === 'expired')
    throw new AppError('conflict', { public: `This API key is ${view.state}. Create another one instead.` })
  await requireNoMoreThanOwn(context, view)
  return { row, view }
}

/**
 * Makes a second key with the same rights, owner and lifetime; the former one is accepted for the overlap, so that a
 * script changes over without a gap. Throws as `findUsableKey`, and `forbidden` for a key of another person.
 */
export async function rotateApiKey(
  context: ServiceContext,
  { apiKeyId, overlapHours }: z.output<typeof rotateApiKeyInput>,
): Promise<Created> {
  const { db, clock, actor } = context
  requirePerson(context, 'rotate')
  const { row, view } = await findUsableKey(context, apiKeyId)
  if (!view.serviceAccountId && row.createdByUserId !== actor.userId)
    throw new AppError('forbidden', { public: 'This API key belongs to another person. Take it over first.' })
  const now = clock()
  const end = new Date(now.getTime() + overlapHours * hourMs)
  const expiresAt = row.expiresAt && row.expiresAt < end ? row.expiresAt : end
  await db.apiKey.update({ where: ownRow(actor, apiKeyId), data: { expiresAt }, select: { id: true } })
  await recordChange(context, {
    kind: 'api_key',
    id: apiKeyId,
    name: view.name,
    before: { expiresAt: view.expiresAt },
    after: { expiresAt: expiresAt.toISOString() },
  })
  const { name, role, farmId, siteId, collectionId, permissions, requestsPerMinute, createdByUserId } = row
  const lifetimeMs = row.expiresAt && row.expiresAt.getTime() - row.createdAt.getTime()
  return insertKey(context, {
    name,
    role,
    farmId,
    siteId,
    collectionId,
    permissions,
    requestsPerMinute,
    createdByUserId,
    expiresAt: lifetimeMs === null ? null : new Date(now.getTime() + lifetimeMs),
  })
}

/**
 * Makes the actor the key's owner: it has the actor's permissions from the next request on, and stays when its former
 * owner leaves. Throws as `findUsableKey`; `conflict` for a key of a service account, `forbidden` for API keys.
 */
export async function takeOverApiKey(
  context: ServiceContext,
  { apiKeyId }: z.output<typeof apiKeyInput>,
): Promise<ApiKeyView> {
  const { db, actor } = context
  requirePerson(context, 'take over')
  const { row, view: before } = await findUsableKey(context, apiKeyId)
  if (before.serviceAccountId)
    throw new AppError('conflict', {
      public: 'This API key belongs to a service account, which stays when people leave.',
    })
  const createdByUserId = actor.userId
  await db.apiKey.update({ where: ownRow(actor, apiKeyId), data: { createdByUserId }, select: { id: true } })
  const after = await viewOf(context, { ...row, createdByUserId })
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
  const view = await viewOf(context, row)
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

/** Returns the place of the key's role. */
async function requireNoMoreThanOwn({ db, actor }: ServiceContext, input: KeyRights): Promise<Place> {
  const place = await placeOf(db, { organizationId: actor.organizationId, input })
  const wrong = input.permissions?.find((permission) => !roleHas(input.role, permission))
  if (wrong) throw new AppError('invalid', { public: `permissions: The role ${input.role} does not include ${wrong}.` })
  const beyond = (input.permissions ?? permissionsOf(input.role)).find((permission) => !may(actor, permission, place))
  if (beyond)
    throw new AppError('forbidden', {
      public: `The key would have permissions that you do not have: ${beyond}. Choose a smaller role, scope or set of permissions.`,
    })
  return place
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

function auditOf({ createdBy: owner, role, farmId, siteId, collectionId, permissions, expiresAt, prefix }: ApiKeyView) {
  return { owner, role, farmId, siteId, collectionId, permissions, expiresAt, prefix }
}
