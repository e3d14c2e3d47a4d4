import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import type { Clock } from '../rules/clock.ts'
import { type AccountEvent, emit, type PlatformEvent } from './event-bus.ts'

/**
 * Records what a person does with their account, in the audit log of each organization that the person is a member of.
 */
export async function recordAccountEvent(context: PlatformContext, event: AccountEvent): Promise<void> {
  await emit('accountEventRecorded', { context, event })
}

/** Records what happens to an organization in the platform's log, in the same transaction. */
export async function recordPlatformEvent(
  { db, clock }: { db: DbOrTransaction; clock: Clock },
  event: PlatformEvent,
): Promise<void> {
  await emit('platformEventRecorded', { db, clock, event })
}
