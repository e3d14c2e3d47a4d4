import type { DbOrTransaction } from '../context/service-context.ts'
import { daysUntilFull, forecastFromDays, type Space, type SpaceSample, trendOf, usableBytes } from './forecast.ts'

const dayMs = 86_400_000

export interface EdgeSpace {
  id: string
  name: string
  siteId: string
  siteName: string
  farmId: string
  fillingToldAt: Date | null
  /** Null: the edge has not reported it. */
  space: Space | null
  pendingBytes: number
  samples: (SpaceSample & { totalBytes: number })[]
}

interface EdgeRow extends Omit<EdgeSpace, 'space' | 'samples' | 'pendingBytes'> {
  free: bigint | null
  total: bigint | null
  pending: bigint
}

interface SampleRow {
  edgeId: string
  measuredAt: Date
  freeBytes: bigint
  totalBytes: bigint
}

/** @param edgeId null: all edges that have reported their space, with the samples of the forecast alone */
export async function readSpaces(
  db: DbOrTransaction,
  { organizationId, edgeId, now }: { organizationId: string; edgeId: string | null; now: Date },
): Promise<EdgeSpace[]> {
  const edges = await db.$queryRaw<EdgeRow[]>`
    select edge.id::text, edge.name, site.id::text as "siteId", site.name as "siteName", site.farm_id::text as "farmId",
      edge.filling_told_at as "fillingToldAt", (edge.heartbeat->'machine'->>'storeFreeBytes')::bigint as free,
      (edge.heartbeat->'machine'->>'storeTotalBytes')::bigint as total,
      coalesce((select sum(greatest(0, job.difference_size_bytes - job.progress_bytes)) from store_job as job
        where job.organization_id = edge.organization_id and job.edge_id = edge.id and job.kind::text = 'fetch'
          and job.state in ('queued', 'running')), 0)::bigint as pending
    from edge join site on site.organization_id = edge.organization_id and site.id = edge.site_id
    where edge.organization_id = ${organizationId}::uuid
      and (edge.id = ${edgeId}::uuid
        or (${edgeId}::uuid is null and edge.revoked_at is null and edge.heartbeat->'machine' is not null))
    order by edge.id`
  const from = new Date(edgeId === null ? now.getTime() - forecastFromDays * dayMs : 0)
  const rows = await db.$queryRaw<SampleRow[]>`
    select edge_id::text as "edgeId", measured_at as "measuredAt", free_bytes as "freeBytes", total_bytes as "totalBytes"
    from edge_space where organization_id = ${organizationId}::uuid and measured_at >= ${from}
      and (edge_id = ${edgeId}::uuid or ${edgeId}::uuid is null)
    order by edge_id, measured_at`
  const samplesOf = Map.groupBy(rows, (row) => row.edgeId)
  return edges.map(({ free, total, pending, ...edge }) => ({
    ...edge,
    space: free === null || total === null ? null : { freeBytes: Number(free), totalBytes: Number(total) },
    pendingBytes: Number(pending),
    samples: (samplesOf.get(edge.id) ?? []).map(({ measuredAt, freeBytes, totalBytes }) => ({
      at: measuredAt,
      freeBytes: Number(freeBytes),
      totalBytes: Number(totalBytes),
    })),
  }))
}

export interface Forecast {
  usable: number
  bytesPerDay: number | null
  days: number | null
}

/** Null: the edge has not reported its space. A disk that was exchanged for another one begins a new line. */
export function forecastOf({ space, samples }: EdgeSpace, now: Date): Forecast | null {
  if (!space) return null
  const same = samples.filter(({ totalBytes }) => totalBytes === space.totalBytes)
  const bytesPerDay = trendOf(same, now)
  return { usable: usableBytes(space), bytesPerDay, days: daysUntilFull(space, bytesPerDay) }
}
