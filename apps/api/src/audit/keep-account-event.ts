import { inOrganization, Prisma } from '@bootfarm/db'
import type { Events } from '../events/event-bus.ts'
import { changeOf, type Fields } from '../rules/audit-change.ts'

/** What a person does with the own account is in the audit log of every organization that the person is a member of. */
export async function keepAccountEvent({
  context: { db, clock },
  event,
}: Events['accountEventRecorded']): Promise<void> {
  const user = await db.user.findUnique({
    where: { id: event.userId },
    select: { name: true, email: true },
  })
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
