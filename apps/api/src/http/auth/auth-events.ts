import { createHash } from 'node:crypto'
import { APIError } from 'better-auth'
import { createAuthMiddleware, getSessionFromCtx, isAPIError } from 'better-auth/api'
import type { PlatformContext } from '../../context/service-context.ts'
import type { AccountEvent } from '../../events/event-bus.ts'
import { recordAccountEvent } from '../../events/record-event.ts'
import { nameInput, passwordProblem } from '../../rules/person.ts'
import { joinByDomain } from '../../session/join-by-domain.ts'
import type { DomainRule } from '../../session/oidc.ts'
import { takeAttempt } from '../../session/take-attempt.ts'
import { addressHeader } from './address-header.ts'

/**
 * Attempts to sign in to one account from one address, and from all addresses from which nobody has signed in to it:
 * whoever guesses from elsewhere keeps nobody out of the account. Accounts that do not exist are counted the same.
 */
const attemptsPerMinuteMax = { address: 10, elsewhere: 60 }
const minuteMs = 60_000

type Middleware = Parameters<Parameters<typeof createAuthMiddleware>[0]>[0]

export interface EventOptions {
  context: PlatformContext
  rules: DomainRule[]
}

/** Before better-auth acts: limits that hold for an account, and the rule for passwords. */
export function beforeAuth({ context }: EventOptions) {
  return createAuthMiddleware(async (ctx) => {
    if (ctx.path === '/sign-in/email') await limitAccount(context, String(ctx.body?.email ?? ''), addressOf(ctx))
    if (ctx.path === '/update-user') requireGoodName(ctx.body?.name)
    if (ctx.path === '/change-password') {
      const session = await getSessionFromCtx(ctx)
      if (session) requireGoodPassword(ctx.body?.newPassword, session.user)
    }
    if (ctx.path === '/sign-out') {
      const session = await getSessionFromCtx(ctx)
      if (session) await record(context, ctx, { userId: session.user.id, action: 'account.signOut' })
    }
  })
}

async function limitAccount(context: PlatformContext, given: string, address: string | null): Promise<void> {
  const email = given.trim().toLowerCase()
  const key = `account:${createHash('sha256').update(email).digest('hex')}`
  const take = (name: string, countMax: number) => takeAttempt(context, { key: name, countMax, windowMs: minuteMs })
  const isWithin =
    (await take(`${key} ${address}`, attemptsPerMinuteMax.address)) &&
    ((await isKnownAddress(context, email, address)) || (await take(key, attemptsPerMinuteMax.elsewhere)))
  if (isWithin) return
  throw new APIError('TOO_MANY_REQUESTS', { message: 'Too many attempts. Wait a minute and try again.' })
}

/** Returns whether a session that was begun there is still open. */
async function isKnownAddress({ db }: PlatformContext, email: string, address: string | null): Promise<boolean> {
  if (address === null) return false
  const session = await db.session.findFirst({
    where: { ipAddress: address, user: { email } },
    select: { id: true },
  })
  return session !== null
}

/** Absent in a change of something else. */
function requireGoodName(name: unknown): void {
  const shape = nameInput.optional().safeParse(name)
  if (shape.success) return
  const problem = shape.error.issues[0]?.message ?? 'is not a name'
  throw new APIError('BAD_REQUEST', { message: `The name ${problem}.`, code: 'NAME_RULE' })
}

function requireGoodPassword(password: unknown, owner: { name?: unknown; email?: unknown }): void {
  const { name, email } = { name: String(owner.name ?? ''), email: String(owner.email ?? '') }
  const problem = passwordProblem(String(password ?? ''), { name, email })
  if (problem) throw new APIError('BAD_REQUEST', { message: problem, code: 'PASSWORD_RULE' })
}

/** After better-auth acted: what happened goes to the audit log. */
export function afterAuth({ context, rules }: EventOptions) {
  return createAuthMiddleware(async (ctx) => {
    const { returned, newSession, session } = ctx.context
    // A redirect is thrown, too.
    const failed = isAPIError(returned) && returned.statusCode >= 400
    if (ctx.path === '/sign-in/email') {
      if (failed) recordFailure(context, ctx)
      // With a second factor it is not complete yet.
      else if (newSession && !newSession.user.twoFactorEnabled)
        await recordSignIn(context, ctx, { userId: newSession.user.id, by: 'password' })
      return
    }
    if (failed) return
    const userId = newSession?.user.id ?? session?.user.id
    if (!userId) return
    if (ctx.path.startsWith('/callback/')) {
      const user = newSession?.user
      if (user?.emailVerified) {
        const { name, email } = user
        await joinByDomain(context, { userId, name, email, address: addressOf(ctx) }, rules)
      }
      await recordSignIn(context, ctx, { userId, by: 'provider' })
    }
    const by = session === null ? secondFactors[ctx.path] : undefined
    if (by) await recordSignIn(context, ctx, { userId, by })
    const event = eventOf(ctx.path, session !== null)
    if (event) await record(context, ctx, { userId, ...event })
  })
}

/** The events that complete a sign-in. */
const secondFactors: Record<string, string> = {
  '/two-factor/verify-totp': 'password and code',
  '/two-factor/verify-backup-code': 'password and backup code',
}

function eventOf(path: string, isSignedIn: boolean): Pick<AccountEvent, 'action' | 'after'> | null {
  switch (path) {
    case '/two-factor/verify-totp':
      return isSignedIn ? { action: 'account.totpOn', after: { totp: true } } : null
    case '/two-factor/disable':
      return { action: 'account.totpOff', after: { totp: false } }
    case '/two-factor/generate-backup-codes':
      return { action: 'account.newBackupCodes' }
    case '/change-password':
      return { action: 'account.changePassword' }
    case '/change-email':
      return { action: 'account.askForNewEmail' }
    case '/update-user':
      return { action: 'account.changeName' }
    default:
      return null
  }
}

/** Not awaited: a known address must not take longer to refuse than an unknown one. */
function recordFailure(context: PlatformContext, ctx: Middleware): void {
  const email = String(ctx.body?.email ?? '').toLowerCase()
  void context.db.user
    .findUnique({ where: { email }, select: { id: true } })
    .then((user) => user && record(context, ctx, { userId: user.id, action: 'account.signInFailed' }, false))
    .catch((error: unknown) => ctx.context.logger.error('audit of a failed sign-in', error))
}

async function recordSignIn(
  context: PlatformContext,
  ctx: Middleware,
  { userId, by }: { userId: string; by: string },
): Promise<void> {
  const lastSignInAt = context.clock()
  await context.db.user.update({ where: { id: userId }, data: { lastSignInAt }, select: { id: true } })
  await record(context, ctx, { userId, action: 'account.signIn', after: { by } })
}

function record(
  context: PlatformContext,
  ctx: Middleware,
  event: Pick<AccountEvent, 'userId' | 'action' | 'after'>,
  isByPerson = true,
): Promise<void> {
  return recordAccountEvent(context, { ...event, isByPerson, address: addressOf(ctx) })
}

function addressOf(ctx: Middleware): string | null {
  return ctx.headers?.get(addressHeader) ?? null
}
