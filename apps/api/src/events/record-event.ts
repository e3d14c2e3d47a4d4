import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import type { Clock } from '../rules/clock.ts'
import { type AccountEvent, emit, type PlatformEvent } from './event-bus.ts'

/** What a person does with the own account: each organization that the person is a member of has it in its audit log. */
export async function recordAccountEvent(context: PlatformContext, event: AccountEvent): Promise<void> {
  await emit('accountEventRecorded', { context, event })
}

/** What happens to organizations: the platform's own log keeps it, in the transaction of what happened. */
export async function recordPlatformEvent(
  { db, clock }: { db: DbOrTransaction; clock: Clock },
  event: PlatformEvent,
): Promise<void> {
  await emit('platformEventRecorded', { db, clock, event })
}
