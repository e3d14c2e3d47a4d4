import { inOrganization, type Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type PlatformContext, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { type Actor, scopesOf } from '../rules/actor.ts'
import { invitationMail, type Mail } from '../rules/mail.ts'
import { makeToken } from '../rules/one-time-token.ts'
import type { Place } from '../rules/place.ts'
import { covers, organizationPlace, scopePlaceOf } from '../rules/place.ts'
import { requireMayGrant } from './change-grants.ts'
import {
  daysValid,
  findInvitation,
  findOpenInvitation,
  type InvitationRow,
  invitationSelect,
  invitationViewOf,
  validMs,
} from './invitation-rows.ts'
import {
  type invitationInput,
  type invitationListInput,
  type invitationPage,
  invitationSort,
  type invitationView,
  type inviteInput,
} from './schema.ts'
import { placeOfScope, roleWords, scopeViewOf } from './scope-rows.ts'

/** The work after the transaction: the mail, and the record that it was sent. */
export interface Invited {
  view: z.infer<typeof invitationView>
  mail: Mail
}

type InviteContext = ServiceContext & { webUrl: string }

/**
 * Offers a role to an address. Throws `not_found`, `forbidden`, and `conflict` if the offer exists, or the address has
 * the role already.
 */
export async function invite(
  context: InviteContext,
  { email, role, scope }: z.output<typeof inviteInput>,
): Promise<Invited> {
  const { db, actor, clock } = context
  const { organizationId } = actor
  const place = await placeOfScope(db, organizationId, scope)
  requireMayGrant(context, role, place)
  await requireNew(context, { email, role, scope })
  const { token, tokenHash } = makeToken('invitation')
  const now = clock()
  const row = await db.invitation.create({
    data: {
      organizationId,
      email,
      role,
      ...scope,
      tokenHash,
      createdAt: now,
      expiresAt: new Date(now.getTime() + validMs),
      invitedByUserId: actor.userId,
      invitedByName: actor.userName,
    },
    select: invitationSelect,
  })
  const view = invitationViewOf(actor, row, now)
  await recordChange(context, {
    kind: 'invitation',
    id: row.id,
    name: email,
    place,
    before: null,
    after: { email, role: roleWords(role, view.scope), expiresAt: row.expiresAt },
  })
  return { view, mail: mailOf(context, row, token) }
}

/**
 * A new link by a new mail, from the actor; the old link ends. Throws `not_found`, `forbidden`, and `conflict` for one
 * that is over.
 */
export async function resendInvitation(
  context: InviteContext,
  { invitationId }: z.output<typeof invitationInput>,
): Promise<Invited> {
  const { db, actor, clock } = context
  const known = await findOpenInvitation(context, invitationId)
  const place = scopePlaceOf(known)
  requireMayGrant(context, known.role, place)
  const { token, tokenHash } = makeToken('invitation')
  const now = clock()
  const row = await db.invitation.update({
    where: ownRow(actor, invitationId),
    data: {
      tokenHash,
      expiresAt: new Date(now.getTime() + validMs),
      sentAt: null,
      invitedByUserId: actor.userId,
      invitedByName: actor.userName,
    },
    select: invitationSelect,
  })
  await recordChange(context, {
    kind: 'invitation',
    id: row.id,
    name: row.email,
    place,
    before: { expiresAt: known.expiresAt, invitedBy: known.invitedByName },
    after: { expiresAt: row.expiresAt, invitedBy: row.invitedByName },
  })
  return { view: invitationViewOf(actor, row, now), mail: mailOf(context, row, token) }
}

/** The link ends at once. Throws as `resendInvitation`. */
export async function revokeInvitation(
  context: ServiceContext,
  { invitationId }: z.output<typeof invitationInput>,
): Promise<z.infer<typeof invitationView>> {
  const { db, actor, clock } = context
  const known = await findOpenInvitation(context, invitationId)
  const place = scopePlaceOf(known)
  requireMayGrant(context, known.role, place)
  const row = await db.invitation.update({
    where: ownRow(actor, invitationId),
    data: { revokedAt: clock() },
    select: invitationSelect,
  })
  await recordChange(context, {
    kind: 'invitation',
    id: row.id,
    name: row.email,
    place,
    before: { revokedAt: null },
    after: { revokedAt: row.revokedAt },
  })
  return invitationViewOf(actor, row, clock())
}

/** After the commit, when a mail server has taken the mail. */
export function markSent(
  { db, clock }: PlatformContext,
  { organizationId, invitationId }: { organizationId: string; invitationId: string },
): Promise<unknown> {
  return inOrganization(db, organizationId, (transaction) =>
    transaction.invitation.update({
      where: ownRow({ organizationId }, invitationId),
      data: { sentAt: clock() },
      select: { id: true },
    }),
  )
}

async function requireNew(
  { db, actor }: ServiceContext,
  { email, role, scope }: z.output<typeof inviteInput>,
): Promise<void> {
  const { organizationId } = actor
  const offered = await db.invitation.findFirst({
    where: { organizationId, email, role, ...scope, acceptedAt: null, revokedAt: null },
    select: { id: true },
  })
  if (offered)
    throw new AppError('conflict', {
      public: `${email} is already invited with this role. Resend that invitation instead.`,
    })
  const had = await db.roleGrant.findFirst({
    where: { organizationId, role, ...scope, membership: { user: { email } } },
    select: { id: true },
  })
  if (had) throw new AppError('conflict', { public: `${email} already has this role.` })
}

function mailOf({ actor, webUrl }: InviteContext, row: InvitationRow, token: string): Mail {
  return invitationMail({
    email: row.email,
    organizationName: actor.organizationName,
    invitedByName: actor.userName,
    role: roleWords(row.role, scopeViewOf(row)),
    url: new URL(`/invitation/${token}`, webUrl).toString(),
    daysValid,
  })
}

/** Throws `not_found`. */
export async function getInvitation(
  context: ServiceContext,
  { invitationId }: z.output<typeof invitationInput>,
): Promise<z.infer<typeof invitationView>> {
  return invitationViewOf(context.actor, await findInvitation(context, invitationId), context.clock())
}

/** Invitations that wait for an answer, also those that have expired. */
export async function listInvitations(
  { db, actor, clock }: ServiceContext,
  input: z.output<typeof invitationListInput>,
): Promise<z.infer<typeof invitationPage>> {
  const order = listOrder(invitationSort, input)
  const rows = await db.invitation.findMany({
    where: {
      organizationId: actor.organizationId,
      acceptedAt: null,
      revokedAt: null,
      AND: [visibleInvitations(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: invitationSelect,
  })
  return order.page(rows, (row) => invitationViewOf(actor, row, clock()))
}

/** To places within those whose members the actor may see. */
function visibleInvitations(actor: Actor): Prisma.InvitationWhereInput {
  const scopes = scopesOf(actor, 'member.read')
  if (scopes.some((scope) => covers(scope, organizationPlace))) return {}
  return { OR: scopes.flatMap(within) }
}

function within({ farmId, siteId, collectionId }: Place): Prisma.InvitationWhereInput[] {
  if (collectionId) return [{ collectionId }]
  if (siteId) return [{ siteId }, { collection: { siteId } }]
  return farmId ? [{ farmId }, { site: { farmId } }, { collection: { site: { farmId } } }] : []
}
