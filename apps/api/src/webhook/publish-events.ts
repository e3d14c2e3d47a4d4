import { randomUUID } from 'node:crypto'
import type { Prisma } from '@bootfarm/db'
import type { AuthenticatedEdge, DbOrTransaction } from '../context/service-context.ts'
import type { Events, PromotedVersion } from '../events/event-bus.ts'
import { writeCacheMarks, writeCacheOf } from '../rules/device/write-cache.ts'
import { activeTraceparent } from '../rules/tracer.ts'
import type { WebhookEventType } from './schema.ts'

interface EventToPublish {
  organizationId: string
  type: WebhookEventType
  /** The key that makes it one event, however often its cause occurs. */
  subject: string
  /** Texts of devices stand in a member `untrusted`. */
  data: Prisma.InputJsonObject
}

/**
 * Writes the event and a message for each endpoint that subscribes to it, in the transaction of the change: both are
 * stored, or neither. Nothing is written without subscribers; a known subject is not announced again.
 */
async function publishEvents(db: DbOrTransaction, now: Date, events: EventToPublish[]): Promise<void> {
  const [first] = events
  if (!first) return
  const { organizationId } = first
  const endpoints = await db.webhookEndpoint.findMany({
    where: { organizationId, enabled: true },
    select: { id: true, events: true },
  })
  for (const { type, subject, data } of events) {
    const listeners = endpoints.filter((endpoint) => endpoint.events.includes(type))
    if (listeners.length === 0) continue
    const id = randomUUID()
    const payload = { type, timestamp: now.toISOString(), organizationId, data }
    const { count } = await db.webhookEvent.createMany({
      data: [{ organizationId, id, type, subject, payload, createdAt: now, traceparent: activeTraceparent() }],
      skipDuplicates: true,
    })
    if (count > 0)
      await db.webhookDelivery.createMany({
        data: listeners.map((endpoint) => ({
          organizationId,
          endpointId: endpoint.id,
          eventId: id,
          dueAt: now,
          createdAt: now,
        })),
      })
  }
}

/** wave.done, of runs of schedules that have ended. */
export async function publishEndedRuns({ db, now, organizationId, runs }: Events['runsEnded']): Promise<void> {
  await publishEvents(
    db,
    now,
    runs.map((run) => ({
      organizationId,
      type: 'wave.done',
      subject: run.id,
      data: {
        scheduleId: run.schedule_id,
        scheduleName: run.name,
        runId: run.id,
        farmId: run.farm_id,
        siteId: run.site_id,
        byHand: run.by_hand,
        instant: run.instant.toISOString(),
        startedAt: run.started_at?.toISOString() ?? null,
        state: run.state,
        reason: run.reason,
        devices: {
          all: run.device_count,
          woken: run.woken_count,
          booted: run.ready_count,
          failed: run.failed_count,
          notSeen: run.not_seen_count,
          skipped: run.skipped_count,
        },
      },
    })),
  )
}

/** version.promoted, of a vDisk whose devices boot another version from now on. */
export async function publishPromotion({ db, now, version, previous, ...vdisk }: PromotedVersion): Promise<void> {
  const { organizationId, farmId, vdiskId, vdiskName } = vdisk
  await publishEvents(db, now, [
    {
      organizationId,
      type: 'version.promoted',
      // The same version may be promoted again, after a newer one came and went.
      subject: `${version.id} ${randomUUID()}`,
      data: {
        farmId,
        vdiskId,
        vdiskName,
        versionId: version.id,
        versionNumber: version.number,
        previousVersionId: previous?.id ?? null,
        previousVersionNumber: previous?.number ?? null,
      },
    },
  ])
}

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

/** rollout.paused, for one that paused by itself. */
export async function publishPausedRollout({
  db,
  now,
  organizationId,
  rollout,
}: Events['rolloutPaused']): Promise<void> {
  const { id: rolloutId, revision, ...data } = rollout
  await publishEvents(db, now, [
    { organizationId, type: 'rollout.paused', subject: `${rolloutId} ${revision}`, data: { rolloutId, ...data } },
  ])
}

/** device.key_alarm, once for each kind of alarm until a person decides: a device in a loop floods nobody. */
export async function publishKeyAlarms({ db, now, edge, alarms }: Events['keyAlarmsRaised']): Promise<void> {
  const { organizationId, siteId, edgeId } = edge
  const names = await eventNamesOf(db, edge, [])
  await publishEvents(
    db,
    now,
    alarms.map(({ deviceId, deviceName, mac, label, key, claimed, claimBootId, revision }) => ({
      organizationId,
      type: 'device.key_alarm',
      subject: `${deviceId} ${revision} ${label}`,
      data: {
        deviceId,
        deviceName,
        mac,
        siteId,
        siteName: names.site,
        edgeId,
        edgeName: names.edge,
        bootId: claimBootId,
        label,
        knownKey: key,
        claimedKey: claimed,
      },
    })),
  )
}

/** The names of site, edge and devices in an event of an edge's boots. */
async function eventNamesOf(
  db: DbOrTransaction,
  { organizationId, siteId, edgeId }: Pick<AuthenticatedEdge, 'organizationId' | 'siteId' | 'edgeId'>,
  boots: { deviceId: string | null }[],
) {
  const select = { id: true, name: true } as const
  const deviceIds = boots.flatMap(({ deviceId }) => deviceId ?? [])
  const devices = await db.device.findMany({ where: { organizationId, id: { in: deviceIds } }, select })
  const site = await db.site.findFirst({ where: { organizationId, id: siteId }, select })
  const edge = await db.edge.findFirst({ where: { organizationId, id: edgeId }, select })
  return {
    devices: new Map(devices.map(({ id, name }) => [id, name])),
    site: site?.name ?? null,
    edge: edge?.name ?? null,
  }
}
