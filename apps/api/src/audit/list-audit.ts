import type { z } from 'zod'
import { visibleAudit } from '../access/visible.ts'
import { cutPage } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { afterEntry, auditEntryOf, auditOrder, auditSelect, auditWhere } from './rows.ts'
import type { AuditEntryView, auditListInput, auditPage } from './schema.ts'

/** Who changed what, newest first: of the parts of the organization in which the actor may read it. */
export async function listAudit(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  input: z.output<typeof auditListInput>,
): Promise<z.infer<typeof auditPage>> {
  const rows = await db.auditEntry.findMany({
    where: {
      organizationId: actor.organizationId,
      AND: [visibleAudit(actor), auditWhere(input), afterEntry(input.cursor)],
    },
    orderBy: auditOrder,
    take: input.limit + 1,
    select: auditSelect,
  })
  return cutPage(rows, input.limit, { item: auditEntryOf, key: (row) => [row.at.toISOString(), row.id] })
}

/** Throws `not_found`. */
export async function getAuditEntry({ db, actor }: ServiceContext, entryId: string): Promise<AuditEntryView> {
  const row = await db.auditEntry.findFirst({
    where: { organizationId: actor.organizationId, id: entryId, AND: [visibleAudit(actor)] },
    select: auditSelect,
  })
  if (!row) throw new AppError('not_found')
  return auditEntryOf(row)
}
