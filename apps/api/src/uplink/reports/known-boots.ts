import type { DbTransaction } from '@bootfarm/db'
import type { BootPhaseReport } from '@bootfarm/proto/uplink'
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

type ReadBoot = Omit<KnownBoot, 'receivedOn' | 'startedAt'> & { receivedOn: string; startedMs: number }

/**
 * Returns the boots by id: `null` for one whose summary is past its retention. The caller holds the lock of their
 * site, so that they do not change.
 */
export async function readKnownBoots(
  transaction: DbTransaction,
  organizationId: string,
  ids: string[],
): Promise<Map<string, KnownBoot | null>> {
  const keys = await transaction.$queryRaw<{ id: string; day: string }[]>`
    select boot_id::text as id, received_on::text as day from boot_key
    where organization_id = ${organizationId}::uuid and boot_id = any(${ids}::uuid[])`
  const known = new Map<string, KnownBoot | null>(keys.map(({ id }) => [id, null]))
  if (keys.length === 0) return known
  const days = [...new Set(keys.map(({ day }) => day))]
  const knownIds = keys.map(({ id }) => id)
  // One text for all of them: converting each column of a hundred boots takes longer than reading them.
  const [read] = await transaction.$queryRaw<{ rows: string | null }[]>`
    select json_agg(json_build_object('id', id, 'receivedOn', received_on, 'edgeId', edge_id, 'siteId', site_id,
      'revision', revision, 'startedMs', (extract(epoch from started_at) * 1000)::bigint, 'outcome', outcome,
      'totalUs', total_us, 'generated', generated, 'phases', phases, 'writeCacheUsedBytes', write_cache_used_bytes,
      'writeCacheSizeBytes', write_cache_size_bytes, 'writeCacheHeld', write_cache_held))::text as rows
    from boot where organization_id = ${organizationId}::uuid and received_on = any(${days}::date[])
      and id = any(${knownIds}::uuid[])`
  for (const { startedMs, receivedOn, ...row } of JSON.parse(read?.rows ?? '[]') as ReadBoot[])
    known.set(row.id, { ...row, receivedOn: new Date(receivedOn), startedAt: new Date(startedMs) })
  return known
}
