import { inOrganization, type TenantDb } from '@bootfarm/db'
import type { z } from 'zod'
import { type OutsideContext, ownRow } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { requireNotSuspended } from '../organization/public.ts'
import type { acceptedView } from '../organization/schema.ts'
import { mayGrant, newMemberActor } from '../rules/actor.ts'
import { hashToken } from '../rules/one-time-token.ts'
import { type Person, passwordProblem } from '../rules/person.ts'
import { scopePlaceOf } from '../rules/place.ts'
import { createAccount, readGrants } from '../session/public.ts'
import type { tokenInput } from '../session/schema.ts'
import { type InvitationRow, invitationSelect, stateOf } from './invitation-rows.ts'
import type { acceptInput, offerView } from './schema.ts'
import { roleWords, scopeViewOf } from './scope-rows.ts'

/** The data of the link's holder; `person` is null if nobody is signed in. */
interface HolderContext extends OutsideContext {
  person: Person | null
}

/** It takes a tenth of a second to hash the password of a new account, so that happens outside of the transaction. */
type AcceptContext = HolderContext & { hashPassword: (password: string) => Promise<string> }

/** Returns the offer of the link. Throws `not_found` for an unknown token, and `conflict` for an expired one. */
export async function getOffer(
  context: HolderContext,
  { token }: z.output<typeof tokenInput>,
): Promise<z.infer<typeof offerView>> {
  return withInvitation(context, token, async (db, row) => ({
    organizationName: row.organization.name,
    email: row.email,
    role: row.role,
    scope: scopeViewOf(row),
    invitedByName: row.invitedByName,
    expiresAt: row.expiresAt.toISOString(),
    hasAccount: (await findAccount(db, row.email)) !== null,
    signedInEmail: context.person?.email ?? null,
  }))
}

/**
 * Makes the person who holds the link a member with the role: the person signed in with the invited address, or a new
 * account for it. Throws `not_found`, `conflict` for a link that has expired, or whose inviter may no longer grant the
 * role, `unauthenticated` if the address has an account, `forbidden` for another person, `quota_exceeded`,
 * `organization_suspended`.
 */
export async function acceptInvitation(
  context: AcceptContext,
  { token, account }: z.output<typeof acceptInput>,
): Promise<z.infer<typeof acceptedView>> {
  const { person, clock } = context
  // Nobody has a password hashed for a made-up token.
  await organizationOf(context, hashToken(token))
  const passwordHash = !person && account ? await context.hashPassword(account.password) : null
  return withInvitation(context, token, async (db, row, organizationId) => {
    await requireNotSuspended(db, organizationId)
    await requireInviterMayGrant(db, row, organizationId)
    const member =
      person ??
      (await newAccount({ db, clock }, row.email, account && { ...account, passwordHash: passwordHash ?? '' }))
    if (member.email !== row.email)
      throw new AppError('forbidden', {
        public: `This invitation is for ${row.email}, but you are signed in as ${member.email}. Sign out first.`,
      })
    await becomeMember(db, row, { organizationId, userId: member.userId, now: clock() })
    const actor = newMemberActor(member, { id: organizationId, name: row.organization.name })
    await recordChange(
      { db, clock, actor, request: context.request },
      {
        kind: 'member',
        id: member.userId,
        name: member.email,
        place: scopePlaceOf(row),
        before: null,
        after: { role: roleWords(row.role, scopeViewOf(row)), invitedBy: row.invitedByName },
      },
    )
    if (person)
      await db.session.update({
        where: { id: person.sessionId },
        data: { activeOrganizationId: organizationId },
        select: { id: true },
      })
    return { organizationId, organizationName: row.organization.name }
  })
}

type OpenInvitation = InvitationRow & { invitedByUserId: string | null; organization: { name: string } }

const unknownInvitation = 'This invitation is unknown. If it was sent again, use the newest e-mail.'

/** Throws `not_found`. */
async function organizationOf({ db }: Pick<HolderContext, 'db'>, tokenHash: string): Promise<string> {
  const [found] = await db.$queryRaw<{ id: string | null }[]>`select invitation_organization(${tokenHash})::text as id`
  if (!found?.id) throw new AppError('not_found', { public: unknownInvitation })
  return found.id
}

/** Runs `work` with the invitation locked. */
async function withInvitation<T>(
  { db, clock }: HolderContext,
  token: string,
  work: (db: TenantDb, row: OpenInvitation, organizationId: string) => Promise<T>,
): Promise<T> {
  const tokenHash = hashToken(token)
  const organizationId = await organizationOf({ db }, tokenHash)
  return inOrganization(db, organizationId, async (transaction) => {
    await transaction.$queryRaw`select id from invitation where token_hash = ${tokenHash} for update`
    const row = await transaction.invitation.findUnique({
      where: { tokenHash },
      select: { ...invitationSelect, invitedByUserId: true, organization: { select: { name: true } } },
    })
    if (!row) throw new AppError('not_found', { public: unknownInvitation })
    const state = stateOf(row, clock())
    if (state !== 'open') throw new AppError('conflict', { public: overTexts[state] })
    return work(transaction, row, organizationId)
  })
}

/** What was offered ends with the right of the person who offered it. Sent again by somebody else, it is theirs. */
async function requireInviterMayGrant(db: TenantDb, row: OpenInvitation, organizationId: string): Promise<void> {
  const userId = row.invitedByUserId
  const grants = userId ? await readGrants(db, { organizationId, userId }) : []
  if (mayGrant({ grants, onlyPermissions: null }, row.role, scopePlaceOf(row))) return
  throw new AppError('conflict', {
    public: `${row.invitedByName} can no longer grant this role. Ask somebody else there to send the invitation again.`,
  })
}

const overTexts = {
  accepted: 'This invitation was already accepted. Sign in.',
  revoked: 'This invitation was revoked. Ask the person who invited you.',
  expired: 'This invitation has expired. Ask the person who invited you to send it again.',
}

function findAccount(db: TenantDb, email: string) {
  return db.user.findUnique({ where: { email }, select: { id: true } })
}

async function newAccount(
  context: { db: TenantDb; clock: OutsideContext['clock'] },
  email: string,
  account: { name: string; password: string; passwordHash: string } | undefined,
): Promise<{ userId: string; name: string; email: string }> {
  if (await findAccount(context.db, email))
    throw new AppError('unauthenticated', { public: `${email} already has an account. Sign in first.` })
  if (!account) throw new AppError('invalid', { public: 'Enter a name and a password for the new account.' })
  const problem = passwordProblem(account.password, { name: account.name, email })
  if (problem) throw new AppError('invalid', { public: problem })
  const { name, passwordHash } = account
  return { userId: await createAccount(context, { name, email, passwordHash }), name, email }
}

async function becomeMember(
  db: TenantDb,
  row: OpenInvitation,
  { organizationId, userId, now }: { organizationId: string; userId: string; now: Date },
): Promise<void> {
  await db.invitation.update({
    where: ownRow({ organizationId }, row.id),
    data: { acceptedAt: now, acceptedByUserId: userId },
    select: { id: true },
  })
  await db.formerMember.deleteMany({ where: { organizationId, userId } })
  await db.membership.upsert({
    where: { organizationId_userId: { organizationId, userId } },
    create: { organizationId, userId, createdAt: now },
    update: {},
    select: { userId: true },
  })
  const { role, farmId, siteId, collectionId } = row
  const grant = { organizationId, userId, role, farmId, siteId, collectionId }
  const known = await db.roleGrant.findFirst({ where: grant, select: { id: true } })
  if (!known)
    await db.roleGrant.create({
      data: { ...grant, createdAt: now, grantedByUserId: row.invitedByUserId },
      select: { id: true },
    })
}
