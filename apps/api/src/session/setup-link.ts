import { randomUUIDv7 } from 'node:crypto'
import { inOrganization } from '@bootfarm/db'
import type { z } from 'zod'
import type { DbOrTransaction, OutsideContext, PlatformContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { freeSlug, insertOrganization } from '../organization/public.ts'
import type { acceptedView } from '../organization/schema.ts'
import { newMemberActor } from '../rules/actor.ts'
import { hashToken, makeToken } from '../rules/one-time-token.ts'
import { passwordProblem } from '../rules/person.ts'
import { createAccount } from './create-account.ts'
import type { setupInput, setupView, tokenInput } from './schema.ts'

const validMs = 24 * 3_600_000

/**
 * Returns the URL for the first owner to set the installation up, once, within a day; earlier ones expire. Null if an
 * account exists.
 */
export async function createSetupLink({ db, clock }: PlatformContext, webUrl: string): Promise<string | null> {
  return db.$transaction(async (transaction) => {
    await lockSetup(transaction)
    return (await hasAccounts(transaction)) ? null : replaceLink(transaction, clock(), webUrl)
  })
}

/**
 * A new link, or until when the one holds that was made before: several API processes start beside each other, and one
 * may start again.
 */
type SetupOffer = { link: string } | { heldUntil: Date }

/** The message of a starting API process about the first owner. Null if an account exists. */
export async function offerSetupLink({ db, clock }: PlatformContext, webUrl: string): Promise<SetupOffer | null> {
  return db.$transaction(async (transaction) => {
    await lockSetup(transaction)
    if (await hasAccounts(transaction)) return null
    const held = await transaction.setupLink.findFirst({
      where: { usedAt: null, expiresAt: { gt: clock() } },
      select: { expiresAt: true },
    })
    return held ? { heldUntil: held.expiresAt } : { link: await replaceLink(transaction, clock(), webUrl) }
  })
}

async function replaceLink(db: DbOrTransaction, createdAt: Date, webUrl: string): Promise<string> {
  const { token, tokenHash } = makeToken('setup')
  await db.setupLink.deleteMany({})
  await db.setupLink.create({
    data: { tokenHash, createdAt, expiresAt: new Date(createdAt.getTime() + validMs) },
    select: { id: true },
  })
  return new URL(`/setup/${token}`, webUrl).toString()
}

/** Throws `not_found` for an unknown link, and `conflict` for an expired one. */
export async function getSetup(
  context: OutsideContext,
  { token }: z.output<typeof tokenInput>,
): Promise<z.infer<typeof setupView>> {
  const link = await findLink(context.db, token, context.clock())
  return { expiresAt: link.expiresAt.toISOString() }
}

type SetupContext = OutsideContext & { hashPassword: (password: string) => Promise<string> }

/** Makes the first account, its organization, and the account its owner; the link ends. Throws as `getSetup`. */
export async function completeSetup(
  context: SetupContext,
  { token, organizationName, password, ...person }: z.output<typeof setupInput>,
): Promise<z.infer<typeof acceptedView>> {
  const { db, clock, request } = context
  await findLink(db, token, clock())
  const problem = passwordProblem(password, person)
  if (problem) throw new AppError('invalid', { public: problem })
  const passwordHash = await context.hashPassword(password)
  const slug = await freeSlug(db, organizationName)
  const organizationId = randomUUIDv7()
  await inOrganization(db, organizationId, async (transaction) => {
    await lockSetup(transaction)
    const link = await findLink(transaction, token, clock())
    await transaction.setupLink.update({
      where: { id: link.id },
      data: { usedAt: clock() },
      select: { id: true },
    })
    const userId = await createAccount({ db: transaction, clock }, { ...person, passwordHash })
    const organization = { id: organizationId, slug, name: organizationName, ownerUserId: userId }
    await insertOrganization(transaction, organization)
    const actor = newMemberActor({ ...person, userId }, organization)
    await recordChange(
      { db: transaction, clock, actor, request },
      {
        kind: 'organization',
        id: organizationId,
        name: organizationName,
        before: null,
        after: { name: organizationName, owner: person.email },
      },
    )
  })
  return { organizationId, organizationName }
}

/** Two that set up at once do so one after the other. */
function lockSetup(db: DbOrTransaction): Promise<unknown> {
  return db.$queryRaw`select pg_advisory_xact_lock(hashtext('bootfarm setup'))::text`
}

async function hasAccounts(db: DbOrTransaction): Promise<boolean> {
  return (await db.user.findFirst({ select: { id: true } })) !== null
}

async function findLink(db: DbOrTransaction, token: string, now: Date): Promise<{ id: string; expiresAt: Date }> {
  const link = await db.setupLink.findUnique({
    where: { tokenHash: hashToken(token) },
    select: { id: true, expiresAt: true, usedAt: true },
  })
  if (!link)
    throw new AppError('not_found', {
      public:
        'This link is unknown, or a newer one was created. Create another on the server: node apps/api/src/cli.ts owner-link',
    })
  if (link.usedAt || (await hasAccounts(db)))
    throw new AppError('conflict', { public: 'This installation is already set up. Sign in.' })
  if (link.expiresAt <= now)
    throw new AppError('conflict', {
      public: 'This link has expired. Create a new one on the server: node apps/api/src/cli.ts owner-link',
    })
  return link
}
