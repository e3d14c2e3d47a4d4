import { Prisma } from '@bootfarm/db'
import type { Events } from '../events/event-bus.ts'

/** Adds to the platform's own log, which nobody can change, in the transaction of the event. */
export async function keepPlatformEvent({ db, clock, event }: Events['platformEventRecorded']): Promise<void> {
  const { action, actorUserId, organizationId, before, after } = event
  await db.platformEvent.create({
    data: {
      at: clock(),
      action,
      actorUserId,
      subjectId: organizationId,
      before: before ?? Prisma.DbNull,
      after: after ?? Prisma.DbNull,
    },
    select: { id: true },
  })
}
