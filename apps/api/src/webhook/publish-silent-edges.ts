import type { Events } from '../events/event-bus.ts'
import { publishEvents } from './publish-event.ts'

/** edge.offline, of edges whose heartbeats have stopped. */
export async function publishSilentEdges({ db, now, organizationId, edges }: Events['edgesFellSilent']): Promise<void> {
  await publishEvents(
    db,
    now,
    edges.map((edge) => ({
      organizationId,
      type: 'edge.offline',
      subject: `${edge.id} ${edge.heartbeat_at.toISOString()}`,
      data: {
        edgeId: edge.id,
        edgeName: edge.name,
        siteId: edge.site_id,
        siteName: edge.site_name,
        lastHeardAt: edge.heartbeat_at.toISOString(),
      },
    })),
  )
}
