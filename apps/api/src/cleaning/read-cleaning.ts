import type { DbOrTransaction } from '../context/service-context.ts'
import type { TimeWindow } from '../placement/public.ts'
import type { cleaningModes } from './schema.ts'

/** A night that has failed is followed by the next one, not by the next minute. */
const restHours = 20

export interface CleanedEdge {
  id: string
  name: string
  siteId: string
  farmId: string
  timeZone: string
  mode: (typeof cleaningModes)[number]
  window: TimeWindow | null
  heartbeatAt: Date | null
  heartbeat: unknown
  agentVersion: string
  /** A job that frees space is queued or runs. */
  isActive: boolean
  /** One has ended lately. */
  rests: boolean
  /** Something was deleted there since the last one that was done began. */
  hasGarbage: boolean
}

interface Row extends Omit<CleanedEdge, 'window'> {
  gcFrom: string | null
  gcTo: string | null
}

/**
 * Reads which stores have something to free, as far as their jobs say it. Data that jobs leave: deleted versions and
 * writes of devices, exports, and what did not come to its end.
 * @param edgeId null: all edges with a store
 */
export async function readCleaning(
  db: DbOrTransaction,
  { organizationId, edgeId, now }: { organizationId: string; edgeId: string | null; now: Date },
): Promise<CleanedEdge[]> {
  const restsUntil = new Date(now.getTime() - restHours * 3_600_000)
  const rows = await db.$queryRaw<Row[]>`
    select edge.id::text, edge.name, site.id::text as "siteId", site.farm_id::text as "farmId",
      site.time_zone as "timeZone", edge.gc_mode::text as mode, edge.gc_from as "gcFrom", edge.gc_to as "gcTo",
      edge.heartbeat_at as "heartbeatAt", edge.heartbeat, edge.agent_version as "agentVersion",
      exists (select from store_job as job where job.organization_id = edge.organization_id and job.edge_id = edge.id
        and job.kind = 'gc' and job.state in ('queued', 'running')) as "isActive",
      exists (select from store_job as job where job.organization_id = edge.organization_id and job.edge_id = edge.id
        and job.kind = 'gc' and job.ended_at > ${restsUntil}) as rests,
      exists (select from store_job as job where job.organization_id = edge.organization_id and job.edge_id = edge.id
        and job.ended_at > coalesce((select max(coalesce(done.started_at, done.asked_at)) from store_job as done
          where done.organization_id = edge.organization_id and done.edge_id = edge.id and done.kind = 'gc'
            and done.state = 'done'), '-infinity')
        and (job.kind::text in ('delete', 'drop_layer', 'export') and job.state = 'done'
          or job.kind::text in ('import', 'fetch', 'seal', 'export') and job.state in ('failed', 'cancelled'))) as "hasGarbage"
    from edge join site on site.organization_id = edge.organization_id and site.id = edge.site_id
    where edge.organization_id = ${organizationId}::uuid and edge.revoked_at is null
      and (edge.id = ${edgeId}::uuid or (${edgeId}::uuid is null and edge.store_reported_at is not null))
    order by edge.id`
  return rows.map(({ gcFrom, gcTo, ...edge }) => ({
    ...edge,
    window: gcFrom === null || gcTo === null ? null : { from: gcFrom, to: gcTo },
  }))
}

/** Whether a job is to start in the next window. */
export function isDue({ mode, isActive, hasGarbage }: CleanedEdge): boolean {
  if (isActive || mode === 'off') return false
  return mode === 'daily' || hasGarbage
}
