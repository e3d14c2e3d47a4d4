import type { z } from 'zod'
import { beforeInstant, cutPage } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { type ApiKeyRow, apiKeySelect, apiKeyViewOf } from './rows.ts'
import type { apiKeyListInput, apiKeyPage } from './schema.ts'

/** Newest first, revoked and expired ones among them. */
export async function listApiKeys(
  { db, clock, actor: { organizationId } }: ServiceContext,
  { cursor, limit }: z.output<typeof apiKeyListInput>,
): Promise<z.infer<typeof apiKeyPage>> {
  const rows = await db.apiKey.findMany({
    where: { organizationId, ...beforeInstant(cursor) },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: limit + 1,
    select: apiKeySelect,
  })
  const names = await creatorNames(db, { organizationId, rows })
  const now = clock()
  return cutPage(rows, limit, {
    item: (row) => apiKeyViewOf(row, names.get(row.createdByUserId ?? '') ?? null, now),
    key: (row) => [row.createdAt.toISOString(), row.id],
  })
}

/** Only of current members. */
export async function creatorNames(
  db: ServiceContext['db'],
  { organizationId, rows }: { organizationId: string; rows: ApiKeyRow[] },
): Promise<Map<string, string>> {
  const ids = rows.flatMap(({ createdByUserId }) => createdByUserId ?? [])
  const members = await db.membership.findMany({
    where: { organizationId, userId: { in: ids } },
    select: { userId: true, user: { select: { name: true } } },
  })
  return new Map(members.map(({ userId, user }) => [userId, user.name]))
}
