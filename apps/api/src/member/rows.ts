import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type Actor, mayGrant, scopesOf } from '../rules/actor.ts'
import { covers, scopePlaceOf } from '../rules/place.ts'
import type { memberView } from './schema.ts'
import { scopeSelect, scopeViewOf } from './scope-rows.ts'

export const memberSelect = {
  userId: true,
  createdAt: true,
  revision: true,
  disabledAt: true,
  user: { select: { name: true, email: true, twoFactorEnabled: true, lastSignInAt: true, serviceOf: true } },
  grants: { select: { id: true, role: true, createdAt: true, ...scopeSelect }, orderBy: { id: 'asc' } },
} as const satisfies Prisma.MembershipSelect

export type MemberRow = Prisma.MembershipGetPayload<{ select: typeof memberSelect }>

/** Returns the member as the requesting person may see it: without roles elsewhere; null if no role is visible. */
export function memberViewOf(actor: Actor, row: MemberRow): z.infer<typeof memberView> {
  const isSelf = row.userId === actor.userId
  const inSight = row.grants.filter((grant) => isSelf || isVisible(actor, scopePlaceOf(grant)))
  return {
    userId: row.userId,
    kind: isServiceAccount(row) ? 'service_account' : 'person',
    name: row.user.name,
    email: row.user.email,
    hasTotp: row.user.twoFactorEnabled ?? false,
    joinedAt: row.createdAt.toISOString(),
    lastSignInAt: row.user.lastSignInAt?.toISOString() ?? null,
    revision: row.revision,
    isSelf,
    mayRemove: !isSelf && mayTakeAll(actor, row),
    grants: inSight.map((grant) => ({
      id: grant.id,
      role: grant.role,
      scope: scopeViewOf(grant),
      grantedAt: grant.createdAt.toISOString(),
      mayTake: mayGrant(actor, grant.role, scopePlaceOf(grant)),
    })),
  }
}

export function isServiceAccount({ user }: Pick<MemberRow, 'user'>): boolean {
  return user.serviceOf !== null
}

/** As the audit log names it, here and below: a service account has no address. */
export function objectKindOf(row: Pick<MemberRow, 'user'>): 'member' | 'service_account' {
  return isServiceAccount(row) ? 'service_account' : 'member'
}

export function memberNameOf({ user }: Pick<MemberRow, 'user'>): string {
  return user.serviceOf === null ? user.email : user.name
}

/**
 * A person who may see members of one site sees everybody with a role there, also by a role of the farm or the
 * organization.
 */
function isVisible(actor: Actor, place: ReturnType<typeof scopePlaceOf>): boolean {
  return scopesOf(actor, 'member.read').some((scope) => covers(scope, place) || covers(place, scope))
}

/** Removing a member takes all of the roles: those elsewhere, too. */
export function mayTakeAll(actor: Actor, row: MemberRow): boolean {
  return row.grants.every((grant) => mayGrant(actor, grant.role, scopePlaceOf(grant)))
}

function isInSight(actor: Actor, row: MemberRow): boolean {
  return row.userId === actor.userId || row.grants.some((grant) => isVisible(actor, scopePlaceOf(grant)))
}

/** Throws `not_found` for a person who is no member, or none that the actor may see. */
export async function findMember({ db, actor }: ServiceContext, userId: string): Promise<MemberRow> {
  const row = await db.membership.findUnique({
    where: { organizationId_userId: { organizationId: actor.organizationId, userId } },
    select: memberSelect,
  })
  if (!row || !isInSight(actor, row)) throw new AppError('not_found')
  return row
}
