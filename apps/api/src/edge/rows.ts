import type { Prisma } from '@bootfarm/db'
import { edgeOnlineWithinMs, type Heartbeat } from '@bootfarm/proto/uplink'
import type { EdgeSummary } from './schema.ts'

export const edgeSummarySelect = {
  id: true,
  name: true,
  revision: true,
  siteId: true,
  arch: true,
  agentVersion: true,
  enrolledAt: true,
  revokedAt: true,
  heartbeatAt: true,
  heartbeat: true,
  weight: true,
  subnets: true,
  draining: true,
  site: { select: { name: true } },
} satisfies Prisma.EdgeSelect

type EdgeSummaryRow = Prisma.EdgeGetPayload<{ select: typeof edgeSummarySelect }>

export function onlineEdgeFilter(now: Date): Prisma.EdgeWhereInput {
  return { revokedAt: null, heartbeatAt: { gt: new Date(now.getTime() - edgeOnlineWithinMs) } }
}

function isOnline(row: Pick<EdgeSummaryRow, 'revokedAt' | 'heartbeatAt'>, now: Date): boolean {
  if (row.revokedAt || !row.heartbeatAt) return false
  return now.getTime() - row.heartbeatAt.getTime() < edgeOnlineWithinMs
}

/** Null until the first one; `takeHeartbeat` stored it after zod had held it against the schema. */
export function heartbeatOf(row: { heartbeat: unknown }): Heartbeat | null {
  return row.heartbeat as Heartbeat | null
}

export function edgeSummaryOf(row: EdgeSummaryRow, now: Date): EdgeSummary {
  const heartbeat = heartbeatOf(row)
  return {
    id: row.id,
    name: row.name,
    siteId: row.siteId,
    siteName: row.site.name,
    online: isOnline(row, now),
    agentVersion: row.agentVersion,
    arch: row.arch,
    enrolledAt: row.enrolledAt.toISOString(),
    revokedAt: row.revokedAt?.toISOString() ?? null,
    heartbeatAt: row.heartbeatAt?.toISOString() ?? null,
    devicesBooting: heartbeat?.devicesBooting ?? 0,
    reportBacklog: heartbeat?.reportBacklog ?? 0,
    problems: heartbeat?.problems ?? [],
    weight: row.weight,
    subnets: row.subnets,
    draining: row.draining,
    revision: row.revision,
  }
}
