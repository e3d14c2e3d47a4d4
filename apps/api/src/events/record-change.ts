import { isDeepStrictEqual } from 'node:util'
import type { DbOrTransaction, ServiceContext } from '../context/service-context.ts'
import { actorIdOf } from '../rules/actor.ts'
import { organizationPlace } from '../rules/place.ts'
import { type Change, type Doer, emit } from './event-bus.ts'

type AuditContext = Pick<ServiceContext, 'actor' | 'clock' | 'request'> & { db: DbOrTransaction }

/** Records what was changed, in the change's own transaction: the audit log keeps it. */
export async function recordChange(context: AuditContext, change: Change): Promise<void> {
  await recordChanges(context, [change])
}

/** Like `recordChange`, unless everything was as requested already. */
export async function recordDifference(context: AuditContext, change: Change): Promise<void> {
  if (isDeepStrictEqual(change.before, change.after)) recordNothing(context)
  else await recordChange(context, change)
}

/** Like `recordChange`, for many objects at once. */
export async function recordChanges({ db, clock, actor, request }: AuditContext, changes: Change[]): Promise<void> {
  request.recordedCount += changes.length
  const who = { organizationId: actor.organizationId, kind: actor.kind, name: actor.userName }
  await emit('changesRecorded', {
    db,
    now: clock(),
    doer: { ...who, id: actorIdOf(actor), address: request.address, requestId: request.id },
    changes: changes.map(({ place = request.place, ...change }) => ({ ...change, place, action: request.action })),
  })
}

/** For a request that changes nothing, because everything is as requested already: nothing is recorded. */
export function recordNothing({ request }: Pick<ServiceContext, 'request'>): void {
  request.recordedCount += 1
}

/** The doer of a scheduled job. */
export function jobDoer(organizationId: string, name: string): Doer {
  return { organizationId, kind: 'system', id: null, name }
}

/** Like `recordChanges`, for changes that no person and no API key requested. */
export async function recordDoings(
  { db, now }: { db: DbOrTransaction; now: Date },
  doer: Doer,
  doings: (Change & { action: string })[],
): Promise<void> {
  await emit('changesRecorded', {
    db,
    now,
    doer,
    changes: doings.map(({ place = organizationPlace, ...doing }) => ({ ...doing, place })),
  })
}
