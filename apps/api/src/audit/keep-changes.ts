import { inOrganization, Prisma } from '@bootfarm/db'
import type { Events, RecordedChanges } from '../events/event-bus.ts'
import { changeOf, type Fields } from '../rules/audit-change.ts'
import { timeOrderedIds } from './time-ordered-ids.ts'

/**
 * Writes changes to the audit log. Keeps only the fields that differ; hides secrets. One statement however many they
 * are: a table of devices changes 10,000.
 */
export async function keepChanges({ db, now, doer, changes }: RecordedChanges): Promise<void> {
  if (changes.length === 0) return
  const { organizationId, kind, id: actorId, name, address = null, requestId = null } = doer
  const ids = timeOrderedIds(now, changes.length)
  const rows = changes.map((entry, index) => {
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

/** A person's change of their own account is in the audit log of every organization that the person belongs to. */
export async function keepAccountEvent({
  context: { db, clock },
  event,
}: Events['accountEventRecorded']): Promise<void> {
  const user = await db.user.findUnique({ where: { id: event.userId }, select: { name: true, email: true } })
  if (!user) return
  const change = changeOf(event.before ?? null, event.after ?? null)
  const organizations = await db.$queryRaw<{ id: string }[]>`
    select organization_id::text as id from memberships_of(${event.userId}::uuid)`
  for (const { id: organizationId } of organizations)
    await inOrganization(db, organizationId, (transaction) =>
      transaction.auditEntry.createMany({
        data: {
          organizationId,
          at: clock(),
          actorKind: event.isByPerson ? 'person' : 'system',
          actorId: event.isByPerson ? event.userId : null,
          actorName: event.isByPerson ? user.name : 'not signed in',
          action: event.action,
          objectKind: 'member',
          objectId: event.userId,
          objectName: user.email,
          before: jsonOf(change.before),
          after: jsonOf(change.after),
          address: event.address,
        },
      }),
    )
}

function jsonOf(fields: Fields | null) {
  return fields ? (fields as Prisma.InputJsonObject) : Prisma.DbNull
}
