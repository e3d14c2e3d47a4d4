import type { z } from 'zod'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type ApiKeyRow, apiKeySelect, apiKeyViewOf, type KeyOwner } from './rows.ts'
import { type ApiKeyView, type apiKeyInput, type apiKeyListInput, type apiKeyPage, apiKeySort } from './schema.ts'

/** Revoked and expired ones among them. */
export async function listApiKeys(
  { db, clock, actor: { organizationId } }: ServiceContext,
  { ownerId, ...asked }: z.output<typeof apiKeyListInput>,
): Promise<z.infer<typeof apiKeyPage>> {
  const order = listOrder(apiKeySort, asked)
  const rows = await db.apiKey.findMany({
    where: { organizationId, ...(ownerId ? { createdByUserId: ownerId } : {}), AND: [order.where] },
    orderBy: order.orderBy,
    take: order.take,
    select: apiKeySelect,
  })
  const owners = await keyOwners(db, { organizationId, rows })
  const now = clock()
  return order.page(rows, (row) => apiKeyViewOf(row, owners.get(row.createdByUserId ?? '') ?? null, now))
}

/** Throws `not_found`. */
export async function getApiKey(
  { db, clock, actor }: ServiceContext,
  { apiKeyId }: z.output<typeof apiKeyInput>,
): Promise<ApiKeyView> {
  const row = await db.apiKey.findUnique({ where: ownRow(actor, apiKeyId), select: apiKeySelect })
  if (!row) throw new AppError('not_found')
  const owners = await keyOwners(db, { organizationId: actor.organizationId, rows: [row] })
  return apiKeyViewOf(row, owners.get(row.createdByUserId ?? '') ?? null, clock())
}

/** Only current members, by id. */
export async function keyOwners(
  db: ServiceContext['db'],
  { organizationId, rows }: { organizationId: string; rows: Pick<ApiKeyRow, 'createdByUserId'>[] },
): Promise<Map<string, KeyOwner>> {
  const ids = rows.flatMap(({ createdByUserId }) => createdByUserId ?? [])
  const members = await db.membership.findMany({
    where: { organizationId, userId: { in: ids } },
    select: { userId: true, disabledAt: true, user: { select: { name: true, serviceOf: true } } },
  })
  return new Map(
    members.map(({ userId, disabledAt, user }) => [
      userId,
      { name: user.name, isServiceAccount: user.serviceOf !== null, isDisabled: disabledAt !== null },
    ]),
  )
}
