import type { z } from 'zod'
import { done, type doneView } from '../../domain/member-view.ts'
import type { confirmInput } from '../../domain/organization-view.ts'
import { AppError } from '../../errors/app-error.ts'
import { recordPersonEvent } from '../audit/record-person-event.ts'
import type { PersonContext, PlatformContext } from '../service-context.ts'
import { takeAttempt } from './take-attempt.ts'

/** For so long after a sign-in, or after the password was given again, what cannot be undone is taken from a session. */
export const confirmedForMs = 600_000
const attemptsMax = 10
const windowMs = 600_000

export type ConfirmContext = PersonContext & {
  verifyPassword: (given: { password: string; hash: string }) => Promise<boolean>
}

/**
 * The person gives the password again. Throws `invalid` for a wrong one, `conflict` for an account without any, `rate_limited`.
 */
export async function confirmSession(
  context: ConfirmContext,
  { password }: z.output<typeof confirmInput>,
): Promise<z.infer<typeof doneView>> {
  const { db, clock, person, request, verifyPassword } = context
  const key = `confirm ${person.userId}`
  if (!(await takeAttempt(context, { key, countMax: attemptsMax, windowMs })))
    throw new AppError('rate_limited')
  const account = await db.account.findFirst({
    where: { userId: person.userId, providerId: 'credential' },
    select: { password: true },
  })
  if (!account?.password)
    throw new AppError('conflict', {
      public: 'Your account has no password: sign out, sign in again, and do it within ten minutes.',
    })
  if (!(await verifyPassword({ password, hash: account.password }))) {
    const { address } = request
    const event = { userId: person.userId, action: 'account.confirmFailed', isByPerson: false, address }
    await recordPersonEvent(context, event)
    throw new AppError('invalid', { public: 'This is not your password.' })
  }
  await db.session.update({
    where: { id: person.sessionId },
    data: { confirmedAt: clock() },
    select: { id: true },
  })
  return done
}

/** Throws `confirmation_needed` where the person's sign-in is long ago, and the password was not given again. */
export async function requireConfirmed(
  { db, clock }: PlatformContext,
  { sessionId }: { sessionId: string },
): Promise<void> {
  const session = await db.session.findUnique({
    where: { id: sessionId },
    select: { createdAt: true, confirmedAt: true },
  })
  const since = clock().getTime() - confirmedForMs
  const last = Math.max(session?.createdAt.getTime() ?? 0, session?.confirmedAt?.getTime() ?? 0)
  if (last < since) throw new AppError('confirmation_needed')
}
