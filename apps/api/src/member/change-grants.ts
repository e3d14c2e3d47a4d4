import type { z } from 'zod'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { mayGrant } from '../rules/actor.ts'
import type { Role } from '../rules/permissions.ts'
import type { Place } from '../rules/place.ts'
import { lockOwners, requireOwner } from './lock-owners.ts'
import { requireCurrentRoles } from './require-current-roles.ts'
import { findMember, memberViewOf } from './rows.ts'
import type { grantInput, memberView, takeInput } from './schema.ts'
import { placeOfScope, roleWords, scopePlaceOf, scopeSelect, scopeViewOf } from './scope-rows.ts'

/** Throws `forbidden` for a role, or a place, that is not the actor's own to give. */
export function requireMayGrant(context: Pick<ServiceContext, 'actor'>, role: Role, place: Place): void {
  if (role === 'owner' && place.farmId)
    throw new AppError('invalid', { public: 'Owners must have the whole organization as scope.' })
  if (mayGrant(context.actor, role, place)) return
  throw new AppError('forbidden', {
    public: `You can only grant and remove roles whose permissions you have in that scope. You do not have all permissions of ${role.replace('_', ' ')}.`,
  })
}

/** Gives a member one more role. Throws `not_found`, `forbidden`, and `conflict` where the member has it already, or other roles than those seen. */
export async function grantRole(
  context: ServiceContext,
  { userId, role, scope, revision }: z.output<typeof grantInput>,
): Promise<z.infer<typeof memberView>> {
  const { db, actor, clock } = context
  const { organizationId } = actor
  const place = await placeOfScope(db, organizationId, scope)
  const member = await findMember(context, userId)
  requireMayGrant(context, role, place)
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
    kind: 'member',
    id: userId,
    name: member.user.email,
    place,
    before: { role: null },
    after: { role: roleWords(role, scopeViewOf(grant)) },
  })
  return memberViewOf(actor, await findMember(context, userId))
}

/** Throws `not_found`, `forbidden`, and `conflict` for the last owner, for a member's last role, and for other roles than those seen. */
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
  await db.roleGrant.delete({ where: ownRow({ organizationId }, grantId) })
  if (grant.role === 'owner') await requireOwner(db, organizationId)
  if (member.grants.length === 1)
    throw new AppError('conflict', {
      public: `This is the last role of ${member.user.name}. Grant another role first, or remove the member.`,
    })
  await recordChange(context, {
    kind: 'member',
    id: userId,
    name: member.user.email,
    place,
    before: { role: roleWords(grant.role, scopeViewOf(grant)) },
    after: { role: null },
  })
  return memberViewOf(actor, await findMember(context, userId))
}
