import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { done, type doneView } from '../rules/changed-object.ts'
import { lockOwners, requireOwner } from './lock-owners.ts'
import { findMember, type MemberRow, mayTakeAll } from './rows.ts'
import type { memberInput } from './schema.ts'
import { roleWords, scopeViewOf } from './scope-rows.ts'

/** Ends a membership: the next request of the person finds none. Throws `not_found`, `forbidden`, and `conflict` for the last owner. */
export async function removeMember(
  context: ServiceContext,
  { userId }: z.output<typeof memberInput>,
): Promise<z.infer<typeof doneView>> {
  await lockOwners(context.db, context.actor.organizationId)
  const member = await findMember(context, userId)
  if (userId === context.actor.userId)
    throw new AppError('conflict', { public: 'To end your own membership, leave the organization.' })
  if (!mayTakeAll(context.actor, member))
    throw new AppError('forbidden', {
      public: `${member.user.name} has a role that you cannot remove. To remove a member, you must be able to remove all of the member’s roles.`,
    })
  return endMembership(context, member)
}

/** Ends the actor's own. Throws `conflict` for the last owner. */
export async function leaveOrganization(context: ServiceContext): Promise<z.infer<typeof doneView>> {
  const { actor, db } = context
  if (actor.kind !== 'person' || !actor.userId)
    throw new AppError('forbidden', { public: 'Only a person can leave an organization.' })
  await lockOwners(db, actor.organizationId)
  return endMembership(context, await findMember(context, actor.userId))
}

async function endMembership(
  context: ServiceContext,
  { userId, user, grants }: MemberRow,
): Promise<z.infer<typeof doneView>> {
  const { db, actor } = context
  const { organizationId } = actor
  // Its grants go with it.
  await db.membership.delete({ where: { organizationId_userId: { organizationId, userId } } })
  if (grants.some(({ role }) => role === 'owner')) await requireOwner(db, organizationId)
  await recordChange(context, {
    kind: 'member',
    id: userId,
    name: user.email,
    before: { roles: grants.map((grant) => roleWords(grant.role, scopeViewOf(grant))) },
    after: null,
  })
  return done
}
