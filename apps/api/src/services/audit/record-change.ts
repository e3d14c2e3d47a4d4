import { Prisma } from '@bootfarm/db'
import { changeOf, type Fields } from '../../domain/audit-change.ts'
import { organizationPlace, type Place } from '../../domain/place.ts'
import type { DbOrTransaction, ServiceContext } from '../service-context.ts'

export interface Change {
  /** As in `placeKinds`, or another noun: member, api_key, webhook. */
  kind: string
  id: string | null
  name: string | null
  /** Where the object lies; where the procedure's own object does, where it is not said. */
  place?: Place
  /** The object's fields, or those that may have changed; null where there was nothing. */
  before: Fields | null
  /** Null where nothing is left. */
  after: Fields | null
}

type AuditContext = Pick<ServiceContext, 'actor' | 'clock' | 'request'> & { db: DbOrTransaction }

/** Writes what was changed to the audit log, in the change's own transaction. Keeps only the fields that differ; hides secrets. */
export async function recordChange(context: AuditContext, change: Change): Promise<void> {
  await recordChanges(context, [change])
}

/** As `recordChange`, for many objects at once. */
export async function recordChanges(
  { db, clock, actor, request }: AuditContext,
  changes: Change[],
): Promise<void> {
  request.recordedCount += changes.length
  await db.auditEntry.createMany({
    data: changes.map(({ kind, id, name, place = request.place, before, after }) => {
      const change = changeOf(before, after)
      return {
        organizationId: actor.organizationId,
        at: clock(),
        actorKind: actor.kind,
        actorId: actor.apiKeyId ?? actor.userId,
        actorName: actor.userName,
        action: request.action,
        objectKind: kind,
        objectId: id,
        objectName: name,
        ...place,
        before: jsonOf(change.before),
        after: jsonOf(change.after),
        address: request.address,
        requestId: request.id,
      }
    }),
  })
}

/** For a request that finds all as it is to be: nothing is changed, and so nothing is recorded. */
export function recordNothing({ request }: Pick<ServiceContext, 'request'>): void {
  request.recordedCount += 1
}

/** Who does something of its own where nobody is signed in: an edge, or the control plane's own jobs. */
export interface Doer {
  organizationId: string
  kind: 'edge' | 'system'
  /** Of the edge. */
  id: string | null
  name: string
  /** Of the edge, as it was asked from. */
  address?: string | null
}

/** The job that does something when its time has come. */
export function jobDoer(organizationId: string, name: string): Doer {
  return { organizationId, kind: 'system', id: null, name }
}

/** As `recordChanges`, for what no person and no key has asked for. */
export async function recordDoings(
  { db, now }: { db: DbOrTransaction; now: Date },
  doer: Doer,
  doings: (Change & { action: string })[],
): Promise<void> {
  if (doings.length === 0) return
  await db.auditEntry.createMany({
    data: doings.map(({ action, kind, id, name, place = organizationPlace, before, after }) => {
      const change = changeOf(before, after)
      return {
        organizationId: doer.organizationId,
        at: now,
        actorKind: doer.kind,
        actorId: doer.id,
        actorName: doer.name,
        action,
        objectKind: kind,
        objectId: id,
        objectName: name,
        ...place,
        before: jsonOf(change.before),
        after: jsonOf(change.after),
        address: doer.address ?? null,
      }
    }),
  })
}

function jsonOf(fields: Fields | null) {
  return fields ? (fields as Prisma.InputJsonObject) : Prisma.DbNull
}
