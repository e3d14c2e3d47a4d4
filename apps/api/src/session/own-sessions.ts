import type { z } from 'zod'
import type { PersonContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordAccountEvent } from '../events/record-event.ts'
import { done, type doneView } from '../rules/changed-object.ts'
import type { accountView, ownSessionsView, sessionInput } from './schema.ts'

/** The person's sessions, the newest first; never a session's secret. */
export async function listOwnSessions({ db, clock, person }: PersonContext): Promise<z.infer<typeof ownSessionsView>> {
  const rows = await db.session.findMany({
    where: { userId: person.userId, expiresAt: { gt: clock() } },
    orderBy: { createdAt: 'desc' },
    take: sessionsMax,
    select: { id: true, ipAddress: true, userAgent: true, createdAt: true, updatedAt: true },
  })
  return rows.map(({ id, ipAddress, userAgent, createdAt, updatedAt }) => ({
    id,
    address: ipAddress,
    agent: userAgent,
    signedInAt: createdAt.toISOString(),
    usedAt: updatedAt.toISOString(),
    isCurrent: id === person.sessionId,
  }))
}

const sessionsMax = 100

/** The next request of that session is anonymous. Throws `not_found` for a session of another person. */
export async function endSession(
  context: PersonContext,
  { sessionId }: z.output<typeof sessionInput>,
): Promise<z.infer<typeof doneView>> {
  const { count } = await context.db.session.deleteMany({
    where: { id: sessionId, userId: context.person.userId },
  })
  if (count === 0) throw new AppError('not_found')
  return recorded(context, 'account.endSession', count)
}

/** All except the requesting one. */
export async function endOtherSessions(context: PersonContext): Promise<z.infer<typeof doneView>> {
  const { userId, sessionId } = context.person
  const { count } = await context.db.session.deleteMany({ where: { userId, id: { not: sessionId } } })
  return recorded(context, 'account.endOtherSessions', count)
}

async function recorded(
  context: PersonContext,
  action: string,
  sessionCount: number,
): Promise<z.infer<typeof doneView>> {
  const { address } = context.request
  await recordAccountEvent(context, {
    userId: context.person.userId,
    action,
    isByPerson: true,
    address,
    after: { sessionCount },
  })
  return done
}

export async function getAccount({ db, person }: PersonContext): Promise<z.infer<typeof accountView>> {
  const { accounts, twoFactorEnabled, ...own } = await db.user.findUniqueOrThrow({
    where: { id: person.userId },
    select: {
      name: true,
      email: true,
      twoFactorEnabled: true,
      accounts: { where: { providerId: 'credential' }, select: { id: true } },
    },
  })
  return { ...own, hasTotp: twoFactorEnabled ?? false, hasPassword: accounts.length > 0 }
}
