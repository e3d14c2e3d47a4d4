import { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../context/service-context.ts'
import type { Clock } from '../rules/clock.ts'

interface PlatformEventFacts {
  /** E.g. `organization.suspend`. */
  action: string
  /** Null for what went by itself. */
  actorUserId: string | null
  organizationId: string | null
  /** Ids, figures and instants alone: it stays when the organization has gone. */
  before: Record<string, string | number | boolean | null> | null
  after: Record<string, string | number | boolean | null> | null
}

/** Adds to the platform's own log, which nobody can change, in the transaction of what happened. */
export async function recordPlatformEvent(
  { db, clock }: { db: DbOrTransaction; clock: Clock },
  { action, actorUserId, organizationId, before, after }: PlatformEventFacts,
): Promise<void> {
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
