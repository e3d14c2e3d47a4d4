import type { Prisma } from '@bootfarm/db'
import type { Permission } from '../rules/permissions.ts'
import type { ApiKeyView } from './schema.ts'

export const placeSelect = {
  farmId: true,
  siteId: true,
  collectionId: true,
  site: { select: { farmId: true } },
  collection: { select: { siteId: true, site: { select: { farmId: true } } } },
} satisfies Prisma.ApiKeySelect

export const apiKeySelect = {
  id: true,
  name: true,
  prefix: true,
  role: true,
  farmId: true,
  siteId: true,
  collectionId: true,
  permissions: true,
  requestsPerMinute: true,
  createdAt: true,
  createdByUserId: true,
  expiresAt: true,
  revokedAt: true,
  lastUsedAt: true,
  farm: { select: { name: true } },
  site: { select: { name: true } },
  collection: { select: { name: true } },
} satisfies Prisma.ApiKeySelect

export type ApiKeyRow = Prisma.ApiKeyGetPayload<{ select: typeof apiKeySelect }>

/** The owner of a key, who is a member. */
export interface KeyOwner {
  name: string
  isServiceAccount: boolean
  isDisabled: boolean
}

export function apiKeyViewOf(row: ApiKeyRow, owner: KeyOwner | null, now: Date): ApiKeyView {
  const { id, name, prefix, role, farmId, siteId, collectionId, requestsPerMinute } = row
  return {
    id,
    name,
    prefix,
    role,
    farmId,
    siteId,
    collectionId,
    requestsPerMinute,
    placeName: (row.farm ?? row.site ?? row.collection)?.name ?? null,
    permissions: row.permissions.length > 0 ? (row.permissions as Permission[]) : null,
    createdAt: row.createdAt.toISOString(),
    createdBy: owner?.name ?? null,
    createdByUserId: row.createdByUserId,
    serviceAccountId: owner?.isServiceAccount ? row.createdByUserId : null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    revokedAt: row.revokedAt?.toISOString() ?? null,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    state: stateOf(row, owner, now),
  }
}

function stateOf({ revokedAt, expiresAt }: ApiKeyRow, owner: KeyOwner | null, now: Date): ApiKeyView['state'] {
  if (revokedAt) return 'revoked'
  if (expiresAt && expiresAt <= now) return 'expired'
  if (owner === null) return 'without_creator'
  return owner.isDisabled ? 'disabled' : 'active'
}
