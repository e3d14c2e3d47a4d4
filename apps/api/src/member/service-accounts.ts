import { randomUUIDv7 } from 'node:crypto'
import type { z } from 'zod'
import { nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { lockOrganization, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { may } from '../rules/actor.ts'
import type { doneView } from '../rules/changed-object.ts'
import { organizationPlace } from '../rules/place.ts'
import {
  removeMember,
  requireCurrentRoles,
  requireMayGrant,
  requireMayTakeAll,
  requireNoOwner,
} from './change-grants.ts'
import { visibleMembers } from './list-members.ts'
import { findMember, isServiceAccount, type MemberRow, memberSelect, memberViewOf } from './rows.ts'
import { placeOfScope, roleWords, scopeViewOf } from './scope-rows.ts'
import {
  type createServiceAccountInput,
  type removeServiceAccountInput,
  type ServiceAccountView,
  type serviceAccountInput,
  type serviceAccountListInput,
  type serviceAccountPage,
  serviceAccountSort,
  serviceAccountsMax,
  type updateServiceAccountInput,
} from './service-account-schema.ts'

/**
 * Accounts of programs. A service account is a member with roles like a person's, owns API keys, and never signs in: it
 * stays when the person who made it leaves.
 */

export async function listServiceAccounts(
  context: ServiceContext,
  { search, ...asked }: z.output<typeof serviceAccountListInput>,
): Promise<z.infer<typeof serviceAccountPage>> {
  const { db, actor } = context
  const { organizationId } = actor
  const order = listOrder(serviceAccountSort, asked)
  const rows = await db.membership.findMany({
    where: {
      organizationId,
      user: { serviceOf: organizationId, ...nameContains(search) },
      AND: [visibleMembers(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: memberSelect,
  })
  const keys = await readKeys(context, rows)
  return order.page(rows, (row) => viewOf(context, row, keys))
}

/** Throws `not_found`. */
export async function getServiceAccount(
  context: ServiceContext,
  { serviceAccountId }: z.output<typeof serviceAccountInput>,
): Promise<ServiceAccountView> {
  const row = await findServiceAccount(context, serviceAccountId)
  return viewOf(context, row, await readKeys(context, [row]))
}

/**
 * Makes one with its first role. Throws `not_found` for the scope, `forbidden` for a role that is not the actor's own
 * to give, `invalid` for owners, `conflict` for too many, `quota_exceeded`.
 */
export async function createServiceAccount(
  context: ServiceContext,
  { name, role, scope }: z.output<typeof createServiceAccountInput>,
): Promise<ServiceAccountView> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = await placeOfScope(db, organizationId, scope)
  requireMayGrant(context, role, place)
  requireNoOwner(role)
  await lockOrganization(db, organizationId, 'no key update')
  const known = await db.membership.count({ where: { organizationId, user: { serviceOf: organizationId } } })
  if (known >= serviceAccountsMax)
    throw new AppError('conflict', {
      public: `An organization can have at most ${serviceAccountsMax} service accounts. Delete one first.`,
    })
  const now = clock()
  const id = randomUUIDv7()
  // Nobody gets mail at this domain (RFC 2606), and nobody proves to own the address.
  const email = `${id}@service-account.invalid`
  const times = { createdAt: now, updatedAt: now }
  await db.user.create({ data: { id, name, email, serviceOf: organizationId, ...times }, select: { id: true } })
  await db.membership.create({ data: { organizationId, userId: id, createdAt: now }, select: { userId: true } })
  await db.roleGrant.create({
    data: { organizationId, userId: id, role, ...scope, createdAt: now, grantedByUserId: actor.userId },
    select: { id: true },
  })
  const row = await findServiceAccount(context, id)
  const roles = row.grants.map((grant) => roleWords(grant.role, scopeViewOf(grant)))
  await recordChange(context, { kind: 'service_account', id, name, place, before: null, after: { name, roles } })
  return viewOf(context, row, await readKeys(context, [row]))
}

/**
 * Renames it, disables it or enables it. Throws `not_found`; `forbidden` where one of its roles is not the actor's own
 * to remove; `conflict` if somebody has changed it or its roles since.
 */
export async function updateServiceAccount(
  context: ServiceContext,
  { serviceAccountId: userId, revision, name, disabled }: z.output<typeof updateServiceAccountInput>,
): Promise<ServiceAccountView> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const now = clock()
  requireMayTakeAll(context, await findServiceAccount(context, userId))
  await requireCurrentRoles(context, { userId, revision })
  const before = await findServiceAccount(context, userId)
  if (name !== undefined)
    await db.user.update({ where: { id: userId }, data: { name, updatedAt: now }, select: { id: true } })
  const disabledAt = disabled === undefined ? before.disabledAt : disabled ? (before.disabledAt ?? now) : null
  await db.membership.update({
    where: { organizationId_userId: { organizationId, userId } },
    data: { disabledAt, revision: { increment: 1 } },
    select: { userId: true },
  })
  const after = await findServiceAccount(context, userId)
  await recordChange(context, {
    kind: 'service_account',
    id: userId,
    name: after.user.name,
    before: auditOf(before),
    after: auditOf(after),
  })
  return viewOf(context, after, await readKeys(context, [after]))
}

function auditOf({ user, disabledAt }: MemberRow) {
  return { name: user.name, disabledAt: disabledAt?.toISOString() ?? null }
}

/** Deletes it and revokes its keys. Throws as `updateServiceAccount`. */
export async function removeServiceAccount(
  context: ServiceContext,
  { serviceAccountId: userId, revision }: z.output<typeof removeServiceAccountInput>,
): Promise<z.infer<typeof doneView>> {
  await findServiceAccount(context, userId)
  await requireCurrentRoles(context, { userId, revision })
  return removeMember(context, { userId })
}

/** Throws `not_found`, for a person too. */
async function findServiceAccount(context: ServiceContext, userId: string): Promise<MemberRow> {
  const row = await findMember(context, userId)
  if (!isServiceAccount(row)) throw new AppError('not_found')
  return row
}

interface Keys {
  count: number
  lastUsedAt: Date | null
}

/** By account. Null for an actor who may not see API keys. */
async function readKeys({ db, clock, actor }: ServiceContext, rows: MemberRow[]): Promise<Map<string, Keys> | null> {
  if (!may(actor, 'api_key.read', organizationPlace)) return null
  const owned = { organizationId: actor.organizationId, createdByUserId: { in: rows.map(({ userId }) => userId) } }
  const used = await db.apiKey.groupBy({ by: ['createdByUserId'], where: owned, _max: { lastUsedAt: true } })
  const usable = { revokedAt: null, OR: [{ expiresAt: null }, { expiresAt: { gt: clock() } }] }
  const counted = await db.apiKey.groupBy({ by: ['createdByUserId'], where: { ...owned, ...usable }, _count: true })
  const countOf = new Map(counted.map(({ createdByUserId, _count }) => [createdByUserId, _count]))
  return new Map(
    used.map(({ createdByUserId, _max }) => [
      createdByUserId ?? '',
      { count: countOf.get(createdByUserId) ?? 0, lastUsedAt: _max.lastUsedAt },
    ]),
  )
}

function viewOf(
  { actor }: Pick<ServiceContext, 'actor'>,
  row: MemberRow,
  keys: Map<string, Keys> | null,
): ServiceAccountView {
  const { userId, name, revision, grants, mayRemove } = memberViewOf(actor, row)
  const own = keys?.get(userId) ?? { count: 0, lastUsedAt: null }
  return {
    id: userId,
    name,
    revision,
    grants,
    createdAt: row.createdAt.toISOString(),
    disabledAt: row.disabledAt?.toISOString() ?? null,
    keys: keys && { count: own.count, lastUsedAt: own.lastUsedAt?.toISOString() ?? null },
    mayChange: mayRemove,
  }
}
