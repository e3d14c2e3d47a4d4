import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { decodeInstantCursor, escapeLike } from '../context/keyset.ts'
import type { AuditEntryView, auditFilter } from './schema.ts'

export const auditSelect = {
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

/** Newest first, by (at, id). */
export const auditOrder = [{ at: 'desc' as const }, { id: 'desc' as const }]

export function auditEntryOf(row: AuditRow): AuditEntryView {
  return { ...row, at: row.at.toISOString(), before: fieldsOf(row.before), after: fieldsOf(row.after) }
}

export function auditWhere(filter: z.output<typeof auditFilter>): Prisma.AuditEntryWhereInput {
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

export function afterEntry(cursor: string | null | undefined): Prisma.AuditEntryWhereInput {
  const after = decodeInstantCursor(cursor)
  if (!after) return {}
  // The first condition says nothing new, and lets PostgreSQL begin in the index where the page does.
  return { at: { lte: after.at }, OR: [{ at: { lt: after.at } }, { at: after.at, id: { lt: after.id } }] }
}

function fieldsOf(value: Prisma.JsonValue): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
}
