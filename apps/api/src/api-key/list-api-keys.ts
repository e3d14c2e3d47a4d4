import type { z } from 'zod'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type ApiKeyRow, apiKeySelect, apiKeyViewOf } from './rows.ts'
import { type ApiKeyView, type apiKeyInput, type apiKeyListInput, type apiKeyPage, apiKeySort } from './schema.ts'

/** Revoked and expired ones among them. */
export async function listApiKeys(
  { db, clock, actor: { organizationId } }: ServiceContext,
  input: z.output<typeof apiKeyListInput>,
): Promise<z.infer<typeof apiKeyPage>> {
  const order = listOrder(apiKeySort, input)
  const rows = await db.apiKey.findMany({
    where: { organizationId, ...order.where },
    orderBy: order.orderBy,
    take: order.take,
    select: apiKeySelect,
  })
  const names = await creatorNames(db, { organizationId, rows })
  const now = clock()
  return order.page(rows, (row) => apiKeyViewOf(row, names.get(row.createdByUserId ?? '') ?? null, now))
}

/** Throws `not_found`. */
export async function getApiKey(
  { db, clock, actor }: ServiceContext,
  { apiKeyId }: z.output<typeof apiKeyInput>,
): Promise<ApiKeyView> {
  const row = await db.apiKey.findUnique({ where: ownRow(actor, apiKeyId), select: apiKeySelect })
  if (!row) throw new AppError('not_found')
  const names = await creatorNames(db, { organizationId: actor.organizationId, rows: [row] })
  return apiKeyViewOf(row, names.get(row.createdByUserId ?? '') ?? null, clock())
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
