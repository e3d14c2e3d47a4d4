import type { z } from 'zod'
import type { PersonContext, PlatformContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordAccountEvent } from '../events/record-event.ts'
import { done, type doneView } from '../rules/changed-object.ts'
import type { confirmInput } from './schema.ts'
import { takeAttempt } from './take-attempt.ts'

/**
 * How long after a sign-in, or after password and code were entered again, a session may do what cannot be undone. If
 * codes are required, a sign-in alone is not enough.
 */
const confirmedForMs = 600_000
const attemptsMax = 10
const windowMs = 600_000

type ConfirmContext = PersonContext & {
  verifyPassword: (given: { password: string; hash: string }) => Promise<boolean>
  verifyCode: (given: { code: string; sealedSecret: string }) => Promise<boolean>
}

/**
 * The person gives the password again, and a code where the account asks for codes. Throws `invalid` for a wrong one,
 * `conflict` for an account without any password, `rate_limited`.
 */
export async function confirmSession(
  context: ConfirmContext,
  { password, code }: z.output<typeof confirmInput>,
): Promise<z.infer<typeof doneView>> {
  const { db, clock, person, verifyPassword } = context
  const key = `confirm ${person.userId}`
  if (!(await takeAttempt(context, { key, countMax: attemptsMax, windowMs }))) throw new AppError('rate_limited')
  const account = await db.account.findFirst({
    where: { userId: person.userId, providerId: 'credential' },
    select: { password: true },
  })
  if (!account?.password)
    throw new AppError('conflict', {
      public: 'Your account has no password. Sign out, sign in again, and repeat this within ten minutes.',
    })
  if (!(await verifyPassword({ password, hash: account.password })))
    throw await refused(context, 'The password is incorrect.')
  await requireCode(context, code)
  await db.session.update({
    where: { id: person.sessionId },
    data: { confirmedAt: clock() },
    select: { id: true },
  })
  return done
}

/** Nothing where the account asks for none. */
async function requireCode(context: ConfirmContext, code: string | undefined): Promise<void> {
  const { db, person, verifyCode } = context
  const authenticator = await db.twoFactor.findFirst({
    where: { userId: person.userId, user: { twoFactorEnabled: true } },
    select: { secret: true },
  })
  if (!authenticator) return
  if (!code)
    throw new AppError('invalid', {
      public: 'Your account uses two-factor authentication. Enter the current code of your authenticator as well.',
    })
  if (!(await verifyCode({ code, sealedSecret: authenticator.secret })))
    throw await refused(context, 'The code is incorrect or has expired.')
}

/** A wrong guess is recorded. */
async function refused(context: ConfirmContext, sentence: string): Promise<AppError> {
  const { userId } = context.person
  const { address } = context.request
  await recordAccountEvent(context, { userId, action: 'account.confirmFailed', isByPerson: false, address })
  return new AppError('invalid', { public: sentence })
}

/** Throws `confirmation_needed` where the person's sign-in is long ago or not enough, and nothing was given again. */
export async function requireConfirmed(
  { db, clock }: PlatformContext,
  { sessionId }: { sessionId: string },
): Promise<void> {
  const session = await db.session.findUnique({
    where: { id: sessionId },
    select: { createdAt: true, confirmedAt: true, user: { select: { twoFactorEnabled: true } } },
  })
  const since = clock().getTime() - confirmedForMs
  const signedInAt = session?.user.twoFactorEnabled ? 0 : (session?.createdAt.getTime() ?? 0)
  const last = Math.max(signedInAt, session?.confirmedAt?.getTime() ?? 0)
  if (last < since) throw new AppError('confirmation_needed')
}
