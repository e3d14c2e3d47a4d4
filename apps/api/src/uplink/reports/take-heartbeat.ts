import type { Heartbeat } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, SystemContext } from '../../context/service-context.ts'

/**
 * Stores the heartbeat unless one with a later (epoch, counter) is known, so that a replay changes nothing.
 * @returns the pair of the last desired state made for this edge; 0.0 before the first
 */
export async function takeHeartbeat(
  { db, clock }: SystemContext,
  edge: AuthenticatedEdge,
  heartbeat: Heartbeat,
): Promise<{ incarnation: number; counter: number }> {
  const { organizationId, edgeId, bootEpoch, counter } = edge
  const now = clock()
  await db.$executeRaw`
    update edge set heartbeat_epoch = ${bootEpoch}, heartbeat_counter = ${counter}, heartbeat_at = ${now},
      heartbeat = ${JSON.stringify(heartbeat)}::jsonb, clock_offset_ms = ${heartbeat.clockUnixMs - now.getTime()},
      agent_version = ${heartbeat.agentVersion}, arch = ${heartbeat.arch},
      seal_key = ${heartbeat.sealKey ?? null},
      refused_code = null, refused_version = null, refused_at = null
    where organization_id = ${organizationId}::uuid and id = ${edgeId}::uuid
      and (heartbeat_epoch, heartbeat_counter) < (${bootEpoch}, ${counter})`
  const state = await db.desiredState.findUnique({
    where: { organizationId_edgeId: { organizationId, edgeId } },
    select: { incarnation: true, counter: true },
  })
  return state ? { incarnation: state.incarnation, counter: Number(state.counter) } : { incarnation: 0, counter: 0 }
}
