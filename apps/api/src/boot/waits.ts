import { Prisma } from '@bootfarm/db'
import type { ReportedWait, WaitEdge } from '../rules/device/device-wait.ts'

export interface WaitEdgeJson {
  id: string
  name: string
  heartbeatAt: string | null
  revokedAt: string | null
}

export interface WaitJson {
  edge: WaitEdgeJson
  asked: { id: string; name: string }
  since: string
}

/** The columns of `edge` that `waitEdgeOf` reads. */
export const waitEdgeJson = Prisma.sql`jsonb_build_object('id', edge.id, 'name', edge.name, 'heartbeatAt', edge.heartbeat_at,
  'revokedAt', edge.revoked_at)`

/** The columns of `boot_wait` that `reportedWaitOf` reads. */
export const waitsJson = Prisma.sql`jsonb_build_object('since', boot_wait.waits_since,
  'edge', (select ${waitEdgeJson} from edge where edge.organization_id = boot_wait.organization_id and edge.id = boot_wait.edge_id),
  'asked', (select jsonb_build_object('id', edge.id, 'name', edge.name) from edge
    where edge.organization_id = boot_wait.organization_id and edge.id = boot_wait.asked_edge_id))`

export function waitEdgeOf({ id, name, heartbeatAt, revokedAt }: WaitEdgeJson): WaitEdge {
  return { id, name, heartbeatAt: dateOf(heartbeatAt), revokedAt: dateOf(revokedAt) }
}

export function reportedWaitOf({ edge, asked, since }: WaitJson): ReportedWait {
  return { edge: waitEdgeOf(edge), asked, since: new Date(since) }
}

function dateOf(instant: string | null): Date | null {
  return instant === null ? null : new Date(instant)
}
