import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleAudit } from '../access/visible.ts'
import { escapeLike } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type AuditEntryView, type auditFilter, type auditListInput, type auditPage, auditSort } from './schema.ts'

/** Returns who changed what, in the parts of the organization whose log the actor may read. */
export async function listAudit(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  input: z.output<typeof auditListInput>,
): Promise<z.infer<typeof auditPage>> {
  const order = listOrder(auditSort, input)
  const rows = await db.auditEntry.findMany({
    where: {
      organizationId: actor.organizationId,
      AND: [visibleAudit(actor), auditWhere(input), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: auditSelect,
  })
  return order.page(rows, auditEntryOf)
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

const auditSelect = {
  id: true,
  at: true,
  actorKind: true,
  actorId: true,
  actorName: true,
  action: true,
  objectKind: true,
  objectId: true,
  objectName: true,
  farmId: true,
  siteId: true,
  collectionId: true,
  before: true,
  after: true,
  address: true,
  requestId: true,
} satisfies Prisma.AuditEntrySelect
type AuditRow = Prisma.AuditEntryGetPayload<{ select: typeof auditSelect }>

function auditEntryOf(row: AuditRow): AuditEntryView {
  return { ...row, at: row.at.toISOString(), before: fieldsOf(row.before), after: fieldsOf(row.after) }
}

function auditWhere(filter: z.output<typeof auditFilter>): Prisma.AuditEntryWhereInput {
  const { since, until, actorId, actorKind, action, objectKind, objectId, siteId, search } = filter
  const text = search && { contains: escapeLike(search), mode: 'insensitive' as const }
  return {
    AND: [
      since ? { at: { gte: new Date(since) } } : {},
      until ? { at: { lt: new Date(until) } } : {},
      actorId ? { actorId } : {},
      actorKind ? { actorKind } : {},
      action ? { action: action.endsWith('.') ? { startsWith: escapeLike(action) } : action } : {},
      objectKind ? { objectKind } : {},
      objectId ? { objectId } : {},
      siteId ? { siteId } : {},
      text ? { OR: [{ objectName: text }, { actorName: text }] } : {},
    ],
  }
}

function fieldsOf(value: Prisma.JsonValue): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
}
