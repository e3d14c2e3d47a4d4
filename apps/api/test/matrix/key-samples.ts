import { randomUUID } from 'node:crypto'
import type { KeySpares, Sample } from '../sample.ts'
import type { TestApi } from '../test-api.ts'
import type { TestTenant } from '../test-tenant.ts'

const spareCount = 24
const claimedAt = new Date('2026-11-20T10:00:00.000Z')

export const keySamples: Record<string, Sample> = {
  'device.decideKey': {
    idName: 'deviceId',
    input: { decision: 'keyless', keyRevision: 0 },
    ownId: (tenant) => tenant.keySpares.waitingIds.pop() ?? '',
  },
  'device.approveKeys': {
    idName: 'collectionId',
    input: { claimedUntil: claimedAt.toISOString(), waitingCount: 1 },
    ownId: (tenant) => tenant.keySpares.collectionIds.pop() ?? '',
  },
}

export async function createKeySpares(
  { db }: Pick<TestApi, 'db'>,
  { organizationId, siteId, collectionId }: TestTenant,
): Promise<KeySpares> {
  const waitingIds = Array.from({ length: spareCount }, () => randomUUID())
  const collectionIds = Array.from({ length: spareCount }, () => randomUUID())
  await db.collection.createMany({ data: collectionIds.map((id) => ({ organizationId, siteId, id, name: id })) })
  const waiting = {
    keyLabel: 'key_waits' as const,
    keyClaimed: Uint8Array.from(Buffer.alloc(32, 1)),
    keyClaimedAt: claimedAt,
  }
  const rows = [
    ...waitingIds.map((id) => ({ id, collectionId })),
    ...collectionIds.map((id) => ({ id: randomUUID(), collectionId: id })),
  ]
  await db.device.createMany({
    data: rows.map((row, index) => ({
      ...row,
      ...waiting,
      organizationId,
      siteId,
      name: `waiting-${index}`,
      mac: `02:bf:00:00:fb:${index.toString(16).padStart(2, '0')}`,
    })),
  })
  return { waitingIds, collectionIds }
}
