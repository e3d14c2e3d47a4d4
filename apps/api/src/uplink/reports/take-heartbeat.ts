import type { Heartbeat } from '@bootfarm/proto/uplink'
import { notify } from '../../context/notifications.ts'
import type { AuthenticatedEdge, SystemContext } from '../../context/service-context.ts'

/**
 * Keeps the heartbeat unless one of a later (epoch, counter) is known, so a replayed one changes nothing.
 * @returns the pair of the last desired state made for this edge; 0.0 before the first
 */
export async function takeHeartbeat(
  { db, clock }: SystemContext,
  edge: AuthenticatedEdge,
  heartbeat: Heartbeat,
): Promise<{ incarnation: number; counter: number }> {
  const { organizationId, siteId, edgeId, bootEpoch, counter } = edge
  const now = clock()
  const rows = await db.$queryRaw<{ is_moved: boolean }[]>`
    update edge set heartbeat_epoch = ${bootEpoch}, heartbeat_counter = ${counter}, heartbeat_at = ${now},
      heartbeat = ${JSON.stringify(heartbeat)}::jsonb, clock_offset_ms = ${heartbeat.clockUnixMs - now.getTime()},
      agent_version = ${heartbeat.agentVersion}, arch = ${heartbeat.arch},
      refused_code = null, refused_version = null, refused_at = null
    from (select organization_id, id, heartbeat from edge where organization_id = ${organizationId}::uuid
      and id = ${edgeId}::uuid) as before
    where edge.organization_id = before.organization_id and edge.id = before.id
      and (edge.heartbeat_epoch, edge.heartbeat_counter) < (${bootEpoch}, ${counter})
    returning (before.heartbeat->>'address', before.heartbeat->>'peerPort', before.heartbeat->>'streamPort') is distinct from
      (edge.heartbeat->>'address', edge.heartbeat->>'peerPort', edge.heartbeat->>'streamPort') as is_moved`
  // The other edges of the site reach it elsewhere: their states have changed.
  if (rows.some(({ is_moved }) => is_moved)) await notify(db, { state: { siteId } })
  const state = await db.desiredState.findUnique({
    where: { organizationId_edgeId: { organizationId, edgeId } },
    select: { incarnation: true, counter: true },
  })
  return state ? { incarnation: state.incarnation, counter: Number(state.counter) } : { incarnation: 0, counter: 0 }
}
