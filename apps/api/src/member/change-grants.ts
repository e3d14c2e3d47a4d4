import type { z } from 'zod'
import { staleError, tellChanges } from '../access/require-current.ts'
import { type DbOrTransaction, lockOrganization, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { may, mayGrant } from '../rules/actor.ts'
import { done, type doneView } from '../rules/changed-object.ts'
import type { Role } from '../rules/permissions.ts'
import { organizationPlace, type Place, scopePlaceOf } from '../rules/place.ts'
import {
  findMember,
  isServiceAccount,
  type MemberRow,
  mayTakeAll,
  memberNameOf,
  memberViewOf,
  objectKindOf,
} from './rows.ts'
import type { grantInput, memberInput, memberView, takeInput } from './schema.ts'
import { placeOfScope, roleWords, scopeSelect, scopeViewOf } from './scope-rows.ts'

/** Roles that only a person gives: whoever finds a key does not become a person who may do everything. */
const givenByPeople: readonly Role[] = ['owner', 'admin']

/** Throws `forbidden` for a role, or a place, that is not the actor's own to give. */
export function requireMayGrant(context: Pick<ServiceContext, 'actor'>, role: Role, place: Place): void {
  requirePersonFor(context, role)
  if (role === 'owner' && place.farmId)
    throw new AppError('invalid', { public: 'Owners must have the whole organization as scope.' })
  if (mayGrant(context.actor, role, place)) return
  throw new AppError('forbidden', {
    public: `You can only grant and remove roles whose permissions you have in that scope. You do not have all permissions of ${role.replace('_', ' ')}.`,
  })
}

export function requirePersonFor({ actor }: Pick<ServiceContext, 'actor'>, role: Role): void {
  if (actor.kind === 'person' || !givenByPeople.includes(role)) return
  throw new AppError('forbidden', {
    public: `An API key can neither grant nor remove the role ${role}. Sign in as a person.`,
  })
}

/**
 * Gives a member one more role. Throws `not_found`, `forbidden`, and `conflict` where the member has it already, or
 * other roles than those seen.
 */
export async function grantRole(
  context: ServiceContext,
  { userId, role, scope, revision }: z.output<typeof grantInput>,
): Promise<z.infer<typeof memberView>> {
  const { db, actor, clock } = context
  const { organizationId } = actor
  const place = await placeOfScope(db, organizationId, scope)
  const member = await findMember(context, userId)
  requireMayGrant(context, role, place)
  if (isServiceAccount(member)) requireNoOwner(role)
  await lockOwners(db, organizationId)
  await requireCurrentRoles(context, { userId, revision })
  const known = await db.roleGrant.findFirst({
    where: { organizationId, userId, role, ...scope },
    select: { id: true },
  })
  if (known) throw new AppError('conflict', { public: `${member.user.name} already has this role there.` })
  const grant = await db.roleGrant.create({
    data: { organizationId, userId, role, ...scope, createdAt: clock(), grantedByUserId: actor.userId },
    select: scopeSelect,
  })
  await recordChange(context, {
    kind: objectKindOf(member),
    id: userId,
    name: memberNameOf(member),
    place,
    before: { role: null },
    after: { role: roleWords(role, scopeViewOf(grant)) },
  })
  return memberViewOf(actor, await findMember(context, userId))
}

/**
 * Throws `not_found`, `forbidden`, and `conflict` for the last owner, for a member's last role, and for other roles
 * than those seen.
 */
export async function takeRole(
  context: ServiceContext,
  { userId, grantId, revision }: z.output<typeof takeInput>,
): Promise<z.infer<typeof memberView>> {
  const { db, actor } = context
  const { organizationId } = actor
  await lockOwners(db, organizationId)
  const member = await findMember(context, userId)
  await requireCurrentRoles(context, { userId, revision })
  const grant = member.grants.find(({ id }) => id === grantId)
  if (!grant) throw new AppError('not_found')
  const place = scopePlaceOf(grant)
  requireMayGrant(context, grant.role, place)
  await db.roleGrant.delete({ where: ownRow(actor, grantId) })
  if (grant.role === 'owner') await requireOwner(db, organizationId)
  if (member.grants.length === 1)
    throw new AppError('conflict', {
      public: `This is the last role of ${member.user.name}. Grant another role first, or remove the member.`,
    })
  await recordChange(context, {
    kind: objectKindOf(member),
    id: userId,
    name: memberNameOf(member),
    place,
    before: { role: roleWords(grant.role, scopeViewOf(grant)) },
    after: { role: null },
  })
  return memberViewOf(actor, await findMember(context, userId))
}

/** An account's own actions are also recorded under its member: none of them changes roles. */
const ofRoles = { not: { startsWith: 'account.' } }

/**
 * Locks the member until the transaction ends. Throws `conflict`, with the name of the other person, if roles changed
 * since the caller saw them; revision undefined: any.
 */
export async function requireCurrentRoles(
  context: ServiceContext,
  { userId, revision }: { userId: string; revision: number | undefined },
): Promise<void> {
  const { db, actor } = context
  const [row] = await db.$queryRaw<{ revision: number }[]>`select revision from membership
    where organization_id = ${actor.organizationId}::uuid and user_id = ${userId}::uuid for no key update`
  if (!row) throw new AppError('not_found')
  if (revision === undefined || revision === row.revision) return
  const mayHear = may(actor, 'audit.read', organizationPlace)
  const which = { objectId: userId, action: ofRoles, count: row.revision - revision }
  throw staleError('member', mayHear ? await tellChanges(context, which) : '', row.revision)
}

/**
 * Ends a membership: the next request of the person finds none. Throws `not_found`, `forbidden`, and `conflict` for the
 * last owner.
 */
export async function removeMember(
  context: ServiceContext,
  { userId }: z.output<typeof memberInput>,
): Promise<z.infer<typeof doneView>> {
  await lockOwners(context.db, context.actor.organizationId)
  const member = await findMember(context, userId)
  if (userId === context.actor.userId)
    throw new AppError('conflict', { public: 'To end your own membership, leave the organization.' })
  requireMayTakeAll(context, member)
  return endMembership(context, member)
}

/** Throws `forbidden` where one of the member's roles is not the actor's own to remove. */
export function requireMayTakeAll(context: Pick<ServiceContext, 'actor'>, member: MemberRow): void {
  if (!mayTakeAll(context.actor, member))
    throw new AppError('forbidden', {
      public: `${member.user.name} has a role that you cannot remove. To change or remove a member, you must be able to remove all of the member’s roles.`,
    })
  for (const { role } of member.grants) requirePersonFor(context, role)
}

/** An organization needs a person who owns it, and nothing that an owner may do needs a program. */
export function requireNoOwner(role: Role): void {
  if (role === 'owner') throw new AppError('invalid', { public: 'role: A service account cannot be an owner.' })
}

/** Ends the actor's own. Throws `conflict` for the last owner. */
export async function leaveOrganization(context: ServiceContext): Promise<z.infer<typeof doneView>> {
  const { actor, db } = context
  if (actor.kind !== 'person' || !actor.userId)
    throw new AppError('forbidden', { public: 'Only a person can leave an organization.' })
  await lockOwners(db, actor.organizationId)
  return endMembership(context, await findMember(context, actor.userId))
}

async function endMembership(context: ServiceContext, member: MemberRow): Promise<z.infer<typeof doneView>> {
  const { db, actor } = context
  const { organizationId } = actor
  const { userId, grants } = member
  if (isServiceAccount(member)) await revokeKeysOf(context, userId)
  // Its grants go with it, and so does a service account.
  await db.membership.delete({ where: { organizationId_userId: { organizationId, userId } } })
  await endOffers(context, member)
  if (grants.some(({ role }) => role === 'owner')) await requireOwner(db, organizationId)
  await recordChange(context, {
    kind: objectKindOf(member),
    id: userId,
    name: memberNameOf(member),
    before: { roles: grants.map((grant) => roleWords(grant.role, scopeViewOf(grant))) },
    after: null,
  })
  return done
}

/** Nobody takes them over: they were never a person's. */
async function revokeKeysOf({ db, actor, clock }: ServiceContext, createdByUserId: string): Promise<void> {
  await db.apiKey.updateMany({
    where: { organizationId: actor.organizationId, createdByUserId, revokedAt: null },
    data: { revokedAt: clock() },
  })
}

/** What the former member had offered to others, and a rule for the domain of the address, open no way back. */
async function endOffers({ db, actor, clock }: ServiceContext, member: MemberRow): Promise<void> {
  const { organizationId } = actor
  const { userId } = member
  const now = clock()
  if (!isServiceAccount(member))
    await db.formerMember.create({ data: { organizationId, userId, endedAt: now }, select: { userId: true } })
  await db.invitation.updateMany({
    where: { organizationId, invitedByUserId: userId, acceptedAt: null, revokedAt: null },
    data: { revokedAt: now },
  })
  await db.joinToken.updateMany({
    where: { organizationId, createdByUserId: userId, usedAt: null, expiresAt: { gt: now } },
    data: { expiresAt: now },
  })
}

/** Concurrent changes of owners wait here for each other, so that two cannot each leave the other as the last. */
async function lockOwners(db: DbOrTransaction, organizationId: string): Promise<void> {
  await lockOrganization(db, organizationId, 'update')
}

/** After `lockOwners` and the change. Throws `conflict` where no owner is left, which takes the change back. */
async function requireOwner(db: DbOrTransaction, organizationId: string): Promise<void> {
  const owner = await db.roleGrant.findFirst({
    where: { organizationId, role: 'owner', farmId: null, siteId: null, collectionId: null },
    select: { id: true },
  })
  if (owner) return
  throw new AppError('conflict', {
    public: 'An organization needs an owner. Make another member an owner first, or delete the organization.',
  })
}
