import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type Actor, mayGrant, scopesOf } from '../rules/actor.ts'
import { covers, scopePlaceOf } from '../rules/place.ts'
import type { invitationStates, invitationView } from './schema.ts'
import { scopeSelect, scopeViewOf } from './scope-rows.ts'

export const daysValid = 7
export const validMs = daysValid * 24 * 3_600_000

export const invitationSelect = {
  id: true,
  email: true,
  role: true,
  invitedByName: true,
  createdAt: true,
  expiresAt: true,
  sentAt: true,
  acceptedAt: true,
  revokedAt: true,
  ...scopeSelect,
} as const satisfies Prisma.InvitationSelect

export type InvitationRow = Prisma.InvitationGetPayload<{ select: typeof invitationSelect }>

export function stateOf(row: InvitationRow, now: Date): (typeof invitationStates)[number] {
  if (row.acceptedAt) return 'accepted'
  if (row.revokedAt) return 'revoked'
  return row.expiresAt <= now ? 'expired' : 'open'
}

export function invitationViewOf(actor: Actor, row: InvitationRow, now: Date): z.infer<typeof invitationView> {
  const state = stateOf(row, now)
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    scope: scopeViewOf(row),
    state,
    invitedByName: row.invitedByName,
    createdAt: row.createdAt.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
    sentAt: row.sentAt?.toISOString() ?? null,
    mayChange: (state === 'open' || state === 'expired') && mayGrant(actor, row.role, scopePlaceOf(row)),
  }
}

/** Throws `not_found` for one that the actor may not see. */
export async function findInvitation({ db, actor }: ServiceContext, invitationId: string): Promise<InvitationRow> {
  const row = await db.invitation.findUnique({ where: ownRow(actor, invitationId), select: invitationSelect })
  const isSeen = row && scopesOf(actor, 'member.read').some((scope) => covers(scope, scopePlaceOf(row)))
  if (!row || !isSeen) throw new AppError('not_found')
  return row
}

/** Locks it. Throws `not_found` for one that the actor may not see, `conflict` for one that is over. */
export async function findOpenInvitation(context: ServiceContext, invitationId: string): Promise<InvitationRow> {
  const { organizationId } = context.actor
  await lockRow(context.db, 'invitation', { organizationId, id: invitationId, strength: 'update' })
  const row = await findInvitation(context, invitationId)
  if (row.acceptedAt) throw new AppError('conflict', { public: `${row.email} has already accepted the invitation.` })
  if (row.revokedAt) throw new AppError('conflict', { public: 'The invitation was revoked. Invite the address again.' })
  return row
}
