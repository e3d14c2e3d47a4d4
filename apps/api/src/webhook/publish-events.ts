import { randomUUID } from 'node:crypto'
import type { Prisma } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import { ofLiveSite } from '../access/visible.ts'
import { type AuthenticatedEdge, type DbOrTransaction, ownRow } from '../context/service-context.ts'
import type { Events, PromotedVersion } from '../events/event-bus.ts'
import { writeCacheMarks, writeCacheOf } from '../rules/device/write-cache.ts'
import type { Place } from '../rules/place.ts'
import { activeTraceparent } from '../rules/tracer.ts'
import type { WebhookEventType } from './schema.ts'

interface EventToPublish {
  type: WebhookEventType
  /** The key that makes it one event, however often its cause occurs. */
  subject: string
  /** Who may see it in the list of events. */
  place: Place
  /** The objects that the list of events is filtered by, besides the place. */
  objects?: { deviceId?: string | null; edgeId?: string; vdiskId?: string }
  /** Texts of devices stand in a member `untrusted`. */
  data: Prisma.InputJsonObject
}

interface Publication {
  db: DbOrTransaction
  now: Date
  organizationId: string
}

/**
 * Writes the events, and a message for each endpoint that subscribes to one, in the transaction of the change: all are
 * stored, or none. A known subject is not announced again. Takes neither a number nor a lock that others wait for:
 * event/number-events.ts numbers the events afterwards. One statement, however many events: it is part of taking
 * reports.
 */
async function publishEvents({ db, now, organizationId }: Publication, events: EventToPublish[]): Promise<void> {
  if (events.length === 0) return
  const timestamp = now.toISOString()
  const rows = events.map(({ type, subject, place, objects, data }) => ({
    id: randomUUID(),
    type,
    subject,
    payload: { type, timestamp, organizationId, data },
    farm_id: place.farmId,
    site_id: place.siteId,
    collection_id: place.collectionId,
    device_id: objects?.deviceId ?? null,
    edge_id: objects?.edgeId ?? null,
    vdisk_id: objects?.vdiskId ?? null,
  }))
  await db.$executeRaw`
    with written as (
      insert into webhook_event (organization_id, id, type, subject, payload, created_at, traceparent, farm_id, site_id,
        collection_id, device_id, edge_id, vdisk_id)
      select ${organizationId}::uuid, id, type, subject, payload, ${now}, ${activeTraceparent()}::text, farm_id, site_id,
        collection_id, device_id, edge_id, vdisk_id
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id uuid, type text, subject text, payload jsonb,
        farm_id uuid, site_id uuid, collection_id uuid, device_id uuid, edge_id uuid, vdisk_id uuid)
      on conflict do nothing returning id, type
    )
    insert into webhook_delivery (organization_id, id, endpoint_id, event_id, due_at, created_at)
    select ${organizationId}::uuid, gen_random_uuid(), endpoint.id, written.id, ${now}, ${now}
    from written join webhook_endpoint as endpoint on endpoint.organization_id = ${organizationId}::uuid
      and endpoint.enabled and written.type = any(endpoint.events)`
}

/**
 * Leaves out what was announced before: boots are reported again and again, and most reports are old news. The subjects
 * are looked up by themselves: joined with boots, PostgreSQL reads all events of the type for each of them.
 */
async function unannounced<Cause extends { subject: string }>(
  { db, organizationId }: Publication,
  type: WebhookEventType,
  causes: Cause[],
): Promise<Cause[]> {
  if (causes.length === 0) return []
  const rows = await db.$queryRaw<{ subject: string }[]>`
    select subject from webhook_event where organization_id = ${organizationId}::uuid and type = ${type}
      and subject = any(${causes.map((cause) => cause.subject)}::text[])`
  const known = new Set(rows.map((row) => row.subject))
  return causes.filter((cause) => !known.has(cause.subject))
}

/** wave.done, of runs of schedules that have ended. */
export async function publishEndedRuns({ db, now, organizationId, runs }: Events['runsEnded']): Promise<void> {
  await publishEvents(
    { db, now, organizationId },
    runs.map((run) => ({
      type: 'wave.done',
      subject: run.id,
      place: { farmId: run.farm_id, siteId: run.site_id, collectionId: null },
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
        edges: { all: run.edge_count, away: run.edges_away_count },
      },
    })),
  )
}

/** version.promoted, of a vDisk whose devices boot another version from now on. */
export async function publishPromotion({ db, now, version, previous, ...vdisk }: PromotedVersion): Promise<void> {
  const { organizationId, farmId, vdiskId, vdiskName } = vdisk
  await publishEvents({ db, now, organizationId }, [
    {
      type: 'version.promoted',
      // The same version may be promoted again, after a newer one came and went.
      subject: `${version.id} ${randomUUID()}`,
      place: { farmId, siteId: null, collectionId: null },
      objects: { vdiskId },
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
    { db, now, organizationId },
    edges.map((edge) => ({
      type: 'edge.offline',
      subject: `${edge.id} ${edge.heartbeat_at.toISOString()}`,
      place: { farmId: edge.farm_id, siteId: edge.site_id, collectionId: null },
      objects: { edgeId: edge.id },
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

/** store.filling, of edges whose stores become full: once until that is over. */
export async function publishFillingStores({ db, now, organizationId, edges }: Events['storesFill']): Promise<void> {
  await publishEvents(
    { db, now, organizationId },
    edges.map((edge) => ({
      type: 'store.filling',
      subject: `${edge.id} ${now.toISOString()}`,
      place: { farmId: edge.farmId, siteId: edge.siteId, collectionId: null },
      objects: { edgeId: edge.id },
      data: {
        edgeId: edge.id,
        edgeName: edge.name,
        siteId: edge.siteId,
        siteName: edge.siteName,
        reason: edge.reason,
        fullAt: edge.fullAt?.toISOString() ?? null,
        freeBytes: edge.freeBytes,
        totalBytes: edge.totalBytes,
        usableBytes: edge.usableBytes,
        pendingBytes: edge.pendingBytes,
      },
    })),
  )
}

/** disk_capture.ended, of a capture that has made a version, failed or was cancelled. */
export async function publishEndedCapture(event: Events['captureEnded']): Promise<void> {
  const { db, now, organizationId, place, capture } = event
  const { deviceId, deviceName, state, reason, vdisk, version } = capture
  await publishEvents({ db, now, organizationId }, [
    {
      type: 'disk_capture.ended',
      subject: capture.id,
      place,
      objects: { deviceId, ...(vdisk ? { vdiskId: vdisk.id } : {}) },
      data: {
        captureId: capture.id,
        deviceId,
        deviceName,
        outcome: state,
        reason,
        vdiskId: vdisk?.id ?? null,
        vdiskName: vdisk?.name ?? null,
        versionId: version?.id ?? null,
        versionNumber: version?.number ?? null,
      },
    },
  ])
}

/** finding.opened and finding.closed. */
export async function publishFinding({ db, now, finding }: Events['findingChanged']): Promise<void> {
  const { organizationId, id, siteId, vdiskId } = finding
  const site = await db.site.findUnique({
    where: ownRow({ organizationId }, siteId),
    select: { farmId: true, name: true },
  })
  if (!site) return
  await publishEvents({ db, now, organizationId }, [
    {
      type: finding.state === 'open' ? 'finding.opened' : 'finding.closed',
      subject: id,
      place: { farmId: site.farmId, siteId, collectionId: null },
      objects: { vdiskId },
      data: {
        findingId: id,
        siteId,
        siteName: site.name,
        vdiskId,
        vdiskName: finding.vdiskName,
        kind: finding.kind,
        factor: finding.factor,
        value: finding.value,
        valueName: finding.valueName,
        sentence: finding.sentence,
        since: finding.since.toISOString(),
      },
    },
  ])
}

/** boot.failed, once for each boot that its edge reports as failed; history that a demo makes up is none. */
export async function publishFailedBoots({ db, now, edge, boots }: Events['bootsReported']): Promise<void> {
  const publication = { db, now, organizationId: edge.organizationId }
  const failed = boots.filter(({ outcome, generated }) => outcome?.kind === 'failed' && !generated)
  const subjects = [...new Set(failed.map(({ id }) => id))].map((subject) => ({ subject }))
  const fresh = await unannounced(publication, 'boot.failed', subjects)
  const rows = await readBoots(
    db,
    edge,
    fresh.map(({ subject }) => subject),
  )
  await publishEvents(
    publication,
    rows
      // An older report may have come late.
      .filter(({ outcome }) => outcome === 'failed')
      .map((boot) => ({
        type: 'boot.failed',
        subject: boot.id,
        ...whereOf(boot, edge),
        data: {
          ...namesOf(boot, edge),
          startedAt: boot.startedAt.toISOString(),
          phase: boot.failedPhase,
          cause: boot.failedCause,
          untrusted: { text: boot.failedText },
        },
      })),
  )
}

/** write_cache.filling, once for each boot and mark that its write cache reaches; of several at once the highest. */
export async function publishFillingCaches({ db, now, edge, boots }: Events['bootsReported']): Promise<void> {
  const publication = { db, now, organizationId: edge.organizationId }
  const filling = boots.flatMap((boot) => {
    const said = boot.guest?.writeCache
    if (!said || boot.generated) return []
    const { level, ...cache } = writeCacheOf(said, said)
    const mark = writeCacheMarks.findLast(({ percent }) => cache.percent >= percent)
    if (!mark) return []
    return [{ id: boot.id, subject: `${boot.id} ${mark.percent}`, mark: mark.percent, level, cache }]
  })
  const fresh = await unannounced(
    publication,
    'write_cache.filling',
    await withoutCaptures(publication, boots, filling),
  )
  const rows = await readBoots(
    db,
    edge,
    fresh.map(({ id }) => id),
  )
  const known = new Map(rows.map((row) => [row.id, row]))
  await publishEvents(
    publication,
    fresh.flatMap(({ id, subject, mark, level, cache }) => {
      const boot = known.get(id)
      if (!boot) return []
      const type = 'write_cache.filling' as const
      return { type, subject, ...whereOf(boot, edge), data: { ...namesOf(boot, edge), mark, level, ...cache } }
    }),
  )
}

/** Of a machine whose disk is captured, the edge reports how much it keeps of the copy: nothing fills. */
async function withoutCaptures<Cause extends { id: string }>(
  { db, organizationId }: Publication,
  boots: BootReport[],
  causes: Cause[],
): Promise<Cause[]> {
  if (causes.length === 0) return []
  const versionIds = boots.flatMap(({ versionId }) => versionId ?? [])
  const captures = await db.diskCapture.findMany({
    where: { organizationId, versionId: { in: versionIds } },
    select: { versionId: true },
  })
  if (captures.length === 0) return causes
  const captured = new Set(captures.map(({ versionId }) => versionId))
  const ids = new Set(boots.flatMap(({ id, versionId }) => (captured.has(versionId ?? null) ? [id] : [])))
  return causes.filter(({ id }) => !ids.has(id))
}

interface ReportingEdge {
  /** Null for a site in the trash. */
  farmId: string | null
  siteName: string | null
  edgeName: string | null
}

interface EventBoot extends ReportingEdge {
  id: string
  mac: string
  startedAt: Date
  outcome: string | null
  failedPhase: string | null
  failedCause: string | null
  failedText: string | null
  simulated: boolean
  deviceId: string | null
  deviceName: string | null
  collectionId: string | null
}

/**
 * Two statements, however many boots: it is part of taking reports. Their days and ids are given, so that no other boot
 * of those days is read.
 */
async function readBoots(
  db: DbOrTransaction,
  { organizationId, siteId, edgeId }: AuthenticatedEdge,
  ids: string[],
): Promise<EventBoot[]> {
  if (ids.length === 0) return []
  const days = await db.$queryRaw<{ day: string }[]>`
    select distinct received_on::text as day from boot_key
    where organization_id = ${organizationId}::uuid and boot_id = any(${ids}::uuid[])`
  return db.$queryRaw<EventBoot[]>`
    select boot.id::text, boot.mac, boot.started_at as "startedAt", boot.outcome::text, boot.simulated,
      boot.failed_phase as "failedPhase", boot.failed_cause as "failedCause", boot.failed_text as "failedText",
      boot.device_id::text as "deviceId", device.name as "deviceName", device.collection_id::text as "collectionId",
      site.farm_id::text as "farmId", site.name as "siteName", edge.name as "edgeName"
    from boot
    left join device on device.organization_id = boot.organization_id and device.id = boot.device_id
    left join site on site.organization_id = boot.organization_id and site.id = ${siteId}::uuid
    left join edge on edge.organization_id = boot.organization_id and edge.id = ${edgeId}::uuid
    where boot.organization_id = ${organizationId}::uuid and boot.id = any(${ids}::uuid[])
      and boot.received_on = any(${days.map(({ day }) => day)}::date[])`
}

function whereOf({ farmId, collectionId, deviceId }: EventBoot, { siteId, edgeId }: AuthenticatedEdge) {
  return { place: { farmId, siteId, collectionId }, objects: { deviceId, edgeId } }
}

function namesOf(boot: EventBoot, { siteId, edgeId }: AuthenticatedEdge) {
  const { id: bootId, deviceId, deviceName, mac, siteName, edgeName, simulated } = boot
  return { bootId, deviceId, deviceName, mac, siteId, siteName, edgeId, edgeName, simulated }
}

/** alert.opened and alert.closed, each once for each alert. */
export async function publishAlerts({ db, now, organizationId, alerts }: Events['alertsChanged']): Promise<void> {
  await publishEvents(
    { db, now, organizationId },
    alerts.map(({ isOpen, place, facts }) => ({
      type: isOpen ? ('alert.opened' as const) : ('alert.closed' as const),
      subject: facts.alertId,
      place,
      data: facts,
    })),
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
  await publishEvents({ db, now, organizationId }, [
    {
      type: 'rollout.paused',
      subject: `${rolloutId} ${revision}`,
      place: { farmId: rollout.farmId, siteId: null, collectionId: null },
      objects: { edgeId: rollout.edgeId },
      data: { rolloutId, ...data },
    },
  ])
}

/** device.key_alarm, once for each kind of alarm until a person decides: a device in a loop floods nobody. */
export async function publishKeyAlarms({ db, now, edge, alarms }: Events['keyAlarmsRaised']): Promise<void> {
  const { organizationId, siteId, edgeId } = edge
  const { farmId, siteName, edgeName } = await readEdge(db, edge)
  await publishEvents(
    { db, now, organizationId },
    alarms.map(({ deviceId, collectionId, deviceName, mac, label, key, claimed, claimBootId, revision }) => ({
      type: 'device.key_alarm',
      subject: `${deviceId} ${revision} ${label}`,
      place: { farmId, siteId, collectionId },
      objects: { deviceId, edgeId },
      data: {
        deviceId,
        deviceName,
        mac,
        siteId,
        siteName,
        edgeId,
        edgeName,
        bootId: claimBootId,
        label,
        knownKey: key,
        claimedKey: claimed,
      },
    })),
  )
}

async function readEdge(db: DbOrTransaction, { organizationId, edgeId }: AuthenticatedEdge): Promise<ReportingEdge> {
  const edge = await db.edge.findFirst({
    where: { organizationId, id: edgeId, ...ofLiveSite },
    select: { name: true, site: { select: { name: true, farmId: true } } },
  })
  return { farmId: edge?.site.farmId ?? null, siteName: edge?.site.name ?? null, edgeName: edge?.name ?? null }
}

/** version.missing, each time that an edge loses a version that devices boot. */
export async function publishLostVersions({ db, now, edge, versions }: Events['versionsLost']): Promise<void> {
  const { organizationId, siteId, edgeId } = edge
  const { farmId, siteName, edgeName } = await readEdge(db, edge)
  await publishEvents(
    { db, now, organizationId },
    versions.map(({ id, number, vdiskId, vdiskName, access }) => ({
      type: 'version.missing',
      // An edge may get it again, and lose it again.
      subject: `${edgeId} ${id} ${randomUUID()}`,
      place: { farmId, siteId, collectionId: null },
      objects: { edgeId, vdiskId },
      data: {
        vdiskId,
        vdiskName,
        versionId: id,
        versionNumber: number,
        access,
        siteId,
        siteName,
        edgeId,
        edgeName,
      },
    })),
  )
}
