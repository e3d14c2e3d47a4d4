import type { DbOrTransaction, ServiceContext } from '../context/service-context.ts'
import { changeOf, type Fields } from '../rules/audit-change.ts'
import { organizationPlace, type Place } from '../rules/place.ts'
import { timeOrderedIds } from './time-ordered-ids.ts'

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
export async function recordChanges({ db, clock, actor, request }: AuditContext, changes: Change[]): Promise<void> {
  request.recordedCount += changes.length
  const who = { organizationId: actor.organizationId, kind: actor.kind, name: actor.userName }
  await addEntries(
    { db, now: clock() },
    { ...who, id: actor.apiKeyId ?? actor.userId, address: request.address, requestId: request.id },
    changes.map(({ place = request.place, ...change }) => ({ ...change, place, action: request.action })),
  )
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
  await addEntries(
    { db, now },
    doer,
    doings.map(({ place = organizationPlace, ...doing }) => ({ ...doing, place })),
  )
}

interface Who {
  organizationId: string
  kind: Doer['kind'] | ServiceContext['actor']['kind']
  id: string | null
  name: string
  address?: string | null
  requestId?: string | null
}

/** One statement however many they are: a table of devices changes 10,000. */
async function addEntries(
  { db, now }: { db: DbOrTransaction; now: Date },
  { organizationId, kind, id: actorId, name, address = null, requestId = null }: Who,
  entries: (Change & { action: string; place: Place })[],
): Promise<void> {
  if (entries.length === 0) return
  const ids = timeOrderedIds(now, entries.length)
  const rows = entries.map((entry, index) => {
    const { farmId, siteId, collectionId } = entry.place
    return {
      id: ids[index],
      action: entry.action,
      object_kind: entry.kind,
      object_id: entry.id,
      object_name: entry.name,
      farm_id: farmId,
      site_id: siteId,
      collection_id: collectionId,
      ...changeOf(entry.before, entry.after),
    }
  })
  await db.$executeRaw`
    insert into audit_entry (organization_id, id, at, actor_kind, actor_id, actor_name, action, object_kind, object_id, object_name,
      farm_id, site_id, collection_id, before, after, address, request_id)
    select ${organizationId}::uuid, row.id, ${now}, ${kind}::"AuditActorKind", ${actorId}::uuid, ${name}, row.action, row.object_kind,
      row.object_id, row.object_name, row.farm_id, row.site_id, row.collection_id, row.before, row.after, ${address}, ${requestId}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id uuid, action text, object_kind text, object_id uuid,
      object_name text, farm_id uuid, site_id uuid, collection_id uuid, before jsonb, after jsonb)`
}
