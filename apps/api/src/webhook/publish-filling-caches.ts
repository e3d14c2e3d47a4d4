import type { Events } from '../events/event-bus.ts'
import { writeCacheMarks, writeCacheOf } from '../rules/write-cache.ts'
import { eventNamesOf } from './event-names.ts'
import { publishEvents } from './publish-event.ts'

/** write_cache.filling, once for each boot and mark that its write cache reaches; of several at once the highest. */
export async function publishFillingCaches({ db, now, edge, boots }: Events['bootsReported']): Promise<void> {
  const { organizationId, siteId, edgeId } = edge
  const filling = boots.flatMap((boot) => {
    const said = boot.guest?.writeCache
    if (!said || boot.generated) return []
    const { level, ...cache } = writeCacheOf(said, said)
    const mark = writeCacheMarks.findLast(({ percent }) => cache.percent >= percent)
    return mark ? [{ id: boot.id, mark: mark.percent, level, cache }] : []
  })
  if (filling.length === 0) return
  const listeners = await db.webhookEndpoint.count({
    where: { organizationId, enabled: true, events: { has: 'write_cache.filling' } },
  })
  if (listeners === 0) return
  const rows = await db.boot.findMany({
    where: { organizationId, id: { in: filling.map(({ id }) => id) } },
    select: { id: true, mac: true, deviceId: true, simulated: true },
  })
  const names = await eventNamesOf(db, { organizationId, siteId, edgeId }, rows)
  const known = new Map(rows.map((row) => [row.id, row]))
  await publishEvents(
    db,
    now,
    filling.flatMap(({ id, mark, level, cache }) => {
      const boot = known.get(id)
      if (!boot) return []
      const { deviceId, mac, simulated } = boot
      const deviceName = names.devices.get(deviceId ?? '') ?? null
      return {
        organizationId,
        type: 'write_cache.filling' as const,
        subject: `${id} ${mark}`,
        data: {
          bootId: id,
          deviceId,
          deviceName,
          mac,
          simulated,
          siteId,
          siteName: names.site,
          edgeId,
          edgeName: names.edge,
          mark,
          level,
          ...cache,
        },
      }
    }),
  )
}
