import type { Events } from '../events/event-bus.ts'
import { eventNamesOf } from './event-names.ts'
import { publishEvents } from './publish-event.ts'

const failedBootSelect = {
  id: true,
  mac: true,
  startedAt: true,
  failedPhase: true,
  failedCause: true,
  failedText: true,
  simulated: true,
  deviceId: true,
} as const

/** boot.failed, once for each boot that its edge reports as failed; history that a demo makes up is none. */
export async function publishFailedBoots({ db, now, edge, boots }: Events['bootsReported']): Promise<void> {
  const { organizationId, siteId, edgeId } = edge
  const ids = boots.filter(({ outcome, generated }) => outcome?.kind === 'failed' && !generated).map(({ id }) => id)
  if (ids.length === 0) return
  const listeners = await db.webhookEndpoint.count({
    where: { organizationId, enabled: true, events: { has: 'boot.failed' } },
  })
  if (listeners === 0) return
  const rows = await db.boot.findMany({
    where: { organizationId, id: { in: ids }, outcome: 'failed' },
    select: failedBootSelect,
  })
  const names = await eventNamesOf(db, { organizationId, siteId, edgeId }, rows)
  await publishEvents(
    db,
    now,
    rows.map((boot) => ({
      organizationId,
      type: 'boot.failed',
      subject: boot.id,
      data: {
        bootId: boot.id,
        deviceId: boot.deviceId,
        deviceName: names.devices.get(boot.deviceId ?? '') ?? null,
        mac: boot.mac,
        siteId,
        siteName: names.site,
        edgeId,
        edgeName: names.edge,
        startedAt: boot.startedAt.toISOString(),
        simulated: boot.simulated,
        phase: boot.failedPhase,
        cause: boot.failedCause,
        untrusted: { text: boot.failedText },
      },
    })),
  )
}
