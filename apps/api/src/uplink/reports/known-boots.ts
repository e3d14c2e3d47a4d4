import type { DbTransaction } from '@bootfarm/db'
import type { BootPhaseReport } from '@bootfarm/proto/uplink'
import { daysOf } from '../../boot/read-boots.ts'
import type { RollupBoot } from '../../rules/boot-rollup.ts'

/** A boot before a report of it is applied. */
export interface KnownBoot extends RollupBoot {
  id: string
  receivedOn: Date
  edgeId: string
  phases: BootPhaseReport[]
  revision: number
  writeCacheUsedBytes: number | null
  writeCacheSizeBytes: number | null
  writeCacheHeld: unknown
}

/**
 * Returns the boots by id: `null` for one whose summary is past its retention. The caller holds the organization's
 * feed, so that they do not change.
 */
export async function readKnownBoots(
  transaction: DbTransaction,
  organizationId: string,
  ids: string[],
): Promise<Map<string, KnownBoot | null>> {
  const keys = await transaction.bootKey.findMany({
    where: { organizationId, bootId: { in: ids } },
    select: { bootId: true, receivedOn: true },
  })
  const known = new Map<string, KnownBoot | null>(keys.map(({ bootId }) => [bootId, null]))
  if (keys.length === 0) return known
  const rows = await transaction.boot.findMany({
    where: { organizationId, id: { in: [...known.keys()] }, receivedOn: { in: daysOf(keys) } },
    select: {
      id: true,
      receivedOn: true,
      edgeId: true,
      siteId: true,
      revision: true,
      startedAt: true,
      outcome: true,
      totalUs: true,
      generated: true,
      phases: true,
      writeCacheUsedBytes: true,
      writeCacheSizeBytes: true,
      writeCacheHeld: true,
    },
  })
  for (const row of rows)
    known.set(row.id, {
      ...row,
      revision: Number(row.revision),
      totalUs: Number(row.totalUs),
      phases: row.phases as unknown as BootPhaseReport[],
      writeCacheUsedBytes: row.writeCacheUsedBytes === null ? null : Number(row.writeCacheUsedBytes),
      writeCacheSizeBytes: row.writeCacheSizeBytes === null ? null : Number(row.writeCacheSizeBytes),
    })
  return known
}
