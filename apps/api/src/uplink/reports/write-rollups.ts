import type { DbTransaction } from '@bootfarm/db'
import {
  addSums,
  emptySums,
  type PhaseSums,
  placeKey,
  type RollupChanges,
  type RollupPlace,
  type RollupSums,
} from '../../rules/boot-rollup.ts'
import type { TimeSketch } from '../../rules/time-sketch.ts'

/** Adds to the sums. The caller holds the site's lock: nobody else changes them between this read and write. */
export async function writeRollups(
  transaction: DbTransaction,
  organizationId: string,
  changes: RollupChanges,
): Promise<void> {
  const changed = changes.entries()
  if (changed.length === 0) return
  const known = await readSums(
    transaction,
    organizationId,
    changed.map(({ place }) => place),
  )
  const rows = changed.map(({ place, sums }) => {
    const total = known.get(placeKey(place)) ?? emptySums()
    addSums(total, sums)
    return rowOf(place, total)
  })
  await transaction.$executeRaw`
    insert into boot_rollup (organization_id, site_id, grain, starts_at, booting_count, ready_count, failed_count, silent_count,
      no_response_count, superseded_count, local_disk_count, generated_count, total_us_sum, total_us_buckets, phases)
    select ${organizationId}::uuid, row.* from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (
      site_id uuid, grain "RollupGrain", starts_at timestamptz, booting_count integer, ready_count integer,
      failed_count integer, silent_count integer, no_response_count integer, superseded_count integer, local_disk_count integer,
      generated_count integer, total_us_sum bigint, total_us_buckets jsonb, phases jsonb)
    on conflict (organization_id, site_id, grain, starts_at) do update set
      booting_count = excluded.booting_count, ready_count = excluded.ready_count, failed_count = excluded.failed_count,
      silent_count = excluded.silent_count, no_response_count = excluded.no_response_count,
      superseded_count = excluded.superseded_count, local_disk_count = excluded.local_disk_count, generated_count = excluded.generated_count,
      total_us_sum = excluded.total_us_sum, total_us_buckets = excluded.total_us_buckets, phases = excluded.phases`
}

async function readSums(
  transaction: DbTransaction,
  organizationId: string,
  places: RollupPlace[],
): Promise<Map<string, RollupSums>> {
  const rows = await transaction.bootRollup.findMany({
    where: {
      organizationId,
      siteId: { in: [...new Set(places.map(({ siteId }) => siteId))] },
      grain: { in: [...new Set(places.map(({ grain }) => grain))] },
      startsAt: {
        in: [...new Set(places.map(({ startsAt }) => startsAt.getTime()))].map((at) => new Date(at)),
      },
    },
  })
  return new Map(
    rows.map((row) => [
      placeKey(row),
      {
        counts: {
          booting: row.bootingCount,
          ready: row.readyCount,
          failed: row.failedCount,
          silent: row.silentCount,
          no_response: row.noResponseCount,
          superseded: row.supersededCount,
          local_disk: row.localDiskCount,
          generated: row.generatedCount,
        },
        totalUsSum: Number(row.totalUsSum),
        totalUsBuckets: row.totalUsBuckets as TimeSketch,
        phases: row.phases as unknown as Record<string, PhaseSums>,
      },
    ]),
  )
}

function rowOf({ siteId, grain, startsAt }: RollupPlace, sums: RollupSums) {
  const { counts } = sums
  return {
    site_id: siteId,
    grain,
    starts_at: startsAt.toISOString(),
    booting_count: counts.booting,
    ready_count: counts.ready,
    failed_count: counts.failed,
    silent_count: counts.silent,
    no_response_count: counts.no_response,
    superseded_count: counts.superseded,
    local_disk_count: counts.local_disk,
    generated_count: counts.generated,
    total_us_sum: sums.totalUsSum,
    total_us_buckets: sums.totalUsBuckets,
    phases: sums.phases,
  }
}
