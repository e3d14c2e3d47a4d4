import { randomUUID } from 'node:crypto'
import { bootReports, bootWith, EdgeClient } from './edge-client.ts'
import { createExperimentSpares } from './matrix/experiment-samples.ts'
import { createFindingSpares } from './matrix/finding-samples.ts'
import { createKeySpares } from './matrix/key-samples.ts'
import { createRolloutSpares } from './matrix/rollout-samples.ts'
import { menusMadeAt } from './procedure-samples.ts'
import type { SampleTenant } from './sample.ts'
import { createSpareObjects } from './spare-objects.ts'
import type { TestApi } from './test-api.ts'
import { createTenant, makeJoinToken, type TestTenant } from './test-tenant.ts'
import { createVersionSpares } from './version-samples.ts'

/** Members and invitations of which each call takes another. */
const spareCount = 80

/** A tenant with all that the samples of procedures name. */
export async function createSampleTenant(api: TestApi, slug: string): Promise<SampleTenant> {
  const rows = await createTenant(api, slug)
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, rows))
  const bootId = randomUUID()
  await edge.reports(1, bootReports(1, [bootWith({ id: bootId, mac: rows.macs[0] ?? '' })]))
  const spare = await EdgeClient.enrolled(api.url, await makeJoinToken(api, rows))
  const spareMenuIds = Array.from({ length: 40 }, () => randomUUID())
  const spareScheduleIds = Array.from({ length: 60 }, () => randomUUID())
  const webhooks = { spareWebhookIds: Array.from({ length: 40 }, () => randomUUID()) }
  const edges = { edgeId: edge.edgeId, spareEdgeId: spare.edgeId }
  const spares = await createSpareObjects(api, rows)
  const versionSpares = await createVersionSpares(api, { ...rows, ...edges })
  const keySpares = await createKeySpares(api, rows)
  const rolloutSpares = await createRolloutSpares(api, rows)
  const others = {
    rolloutSpares,
    findingSpares: await createFindingSpares(api, rows),
    experimentSpares: await createExperimentSpares(api, rows),
    spares,
    keySpares,
    versionSpares,
    spareMenuIds,
    spareScheduleIds,
    runId: randomUUID(),
    auditEntryId: randomUUID(),
    eventId: randomUUID(),
    alertId: randomUUID(),
    discoveredId: randomUUID(),
    organizationName: `Organization ${slug}`,
    apiKeyId: randomUUID(),
    ...webhooks,
  }
  const people = await createSamplePeople(api, rows)
  const tenant = { ...rows, ...edges, ...people, bootId, ...others }
  await createMenus(api, rows, spareMenuIds)
  await createSchedules(api, tenant)
  await api.db.auditEntry.create({
    data: {
      organizationId: rows.organizationId,
      id: tenant.auditEntryId,
      at: menusMadeAt,
      actorKind: 'system',
      actorName: 'set-up',
      action: 'farm.create',
      objectKind: 'farm',
      objectId: rows.farmId,
    },
  })
  const { organizationId, apiKeyId } = tenant
  const key = { name: 'A key', prefix: 'bfk_', secretHash: apiKeyId, role: 'viewer' as const }
  await api.db.apiKey.create({ data: { organizationId, id: apiKeyId, ...key, createdAt: menusMadeAt } })
  await createWebhooks(api, tenant)
  await createEvent(api, tenant)
  await createAlert(api, tenant)
  await createDiscovered(api, tenant)
  return tenant
}

async function createMenus(api: TestApi, { organizationId, farmId }: TestTenant, ids: string[]): Promise<void> {
  const menu = { organizationId, farmId, timeoutMs: 10_000, defaultPosition: 0 }
  const times = { createdAt: menusMadeAt, updatedAt: menusMadeAt }
  await api.db.bootMenu.createMany({ data: ids.map((id) => ({ ...menu, ...times, id, name: id })) })
  const entry = { organizationId, position: 0, title: 'Local disk' }
  await api.db.bootMenuEntry.createMany({ data: ids.map((menuId) => ({ ...entry, menuId })) })
}

async function createSchedules(
  api: TestApi,
  { organizationId, farmId, spareScheduleIds, runId }: SampleTenant,
): Promise<void> {
  const now = menusMadeAt
  const schedule = {
    organizationId,
    farmId,
    ratePerMinute: 10,
    kind: 'cron' as const,
    cron: '30 6 * * *',
    timeZone: 'UTC',
    preparedUntil: now,
    createdAt: now,
    updatedAt: now,
  }
  await api.db.schedule.createMany({ data: spareScheduleIds.map((id) => ({ ...schedule, id, name: id })) })
  const run = {
    action: 'power_on' as const,
    power: 'wake_on_lan' as const,
    ratePerMinute: 10,
    deviceCount: 0,
  }
  const scheduleId = spareScheduleIds[0] ?? ''
  await api.db.scheduleRun.create({
    data: { ...run, organizationId, id: runId, scheduleId, instant: now, closesAt: now, createdAt: now },
  })
}

async function createEvent(
  { db }: TestApi,
  { organizationId, farmId, siteId, collectionId, edgeId, deviceIds, eventId: id }: SampleTenant,
): Promise<void> {
  const [deviceId = null] = deviceIds
  const data = { bootId: id, deviceId, siteId, edgeId }
  const payload = { type: 'boot.failed', timestamp: menusMadeAt.toISOString(), organizationId, data }
  const place = { farmId, siteId, collectionId, deviceId, edgeId }
  await db.webhookEvent.create({
    data: { organizationId, id, type: 'boot.failed', subject: id, payload, createdAt: menusMadeAt, ...place },
  })
}

async function createAlert({ db }: TestApi, { organizationId, siteId, collectionId, alertId: id }: SampleTenant) {
  const figures = {
    window: '1h',
    boots: 20,
    missed: 20,
    burnRate: 20,
    burnLimit: 14.4,
    percent: 95,
    seconds: 30,
    days: 30,
  }
  const at = menusMadeAt
  const alert = {
    kind: 'objective' as const,
    figures,
    bootCount: 20,
    beforeCount: 0,
    firstAt: at,
    lastAt: at,
    openedAt: at,
  }
  await db.alert.create({ data: { organizationId, id, siteId, collectionId, ...alert } })
}

async function createDiscovered(
  { db }: TestApi,
  { organizationId, siteId, edgeId, discoveredId: id }: SampleTenant,
): Promise<void> {
  const seen = { firstSeenAt: menusMadeAt, lastSeenAt: menusMadeAt, requests: 1 }
  await db.discoveredDevice.create({
    data: { organizationId, siteId, edgeId, id, mac: '02:bf:00:00:dd:01', asked: 'dhcp', ...seen },
  })
}

async function createSamplePeople({ db, clock }: TestApi, { organizationId, siteId }: TestTenant) {
  const ids = () => Array.from({ length: spareCount }, () => randomUUID())
  const [spareUserIds, spareInvitationIds] = [ids(), ids()]
  await db.user.createMany({
    data: spareUserIds.map((id) => ({ id, name: 'A spare one', email: `${id}@example.test` })),
  })
  await db.membership.createMany({ data: spareUserIds.map((userId) => ({ organizationId, userId })) })
  await db.roleGrant.createMany({
    data: spareUserIds.flatMap((id) => [
      { organizationId, userId: id, id, role: 'operator' as const },
      { organizationId, userId: id, siteId, role: 'viewer' as const },
    ]),
  })
  const expiresAt = new Date(clock.now.getTime() + 86_400_000)
  const offer = { organizationId, role: 'viewer' as const, invitedByName: 'Somebody', expiresAt }
  await db.invitation.createMany({
    data: spareInvitationIds.map((id) => ({
      ...offer,
      id,
      email: `${id}@example.test`,
      tokenHash: id,
      createdAt: clock.now,
    })),
  })
  const spareServiceIds = ids()
  await db.user.createMany({
    data: spareServiceIds.map((id) => ({
      id,
      name: `Program ${id}`,
      email: `${id}@service-account.invalid`,
      serviceOf: organizationId,
    })),
  })
  await db.membership.createMany({ data: spareServiceIds.map((userId) => ({ organizationId, userId })) })
  await db.roleGrant.createMany({
    data: spareServiceIds.map((id) => ({ organizationId, userId: id, id, siteId, role: 'viewer' as const })),
  })
  const serviceKeyId = randomUUID()
  const key = { name: 'A key of a program', prefix: 'bfk_', secretHash: serviceKeyId, role: 'viewer' as const, siteId }
  await db.apiKey.create({
    data: {
      organizationId,
      id: serviceKeyId,
      ...key,
      createdByUserId: spareServiceIds[0] ?? null,
      createdAt: clock.now,
    },
  })
  return { spareUserIds, spareInvitationIds, spareServiceIds, serviceKeyId }
}

async function createWebhooks(api: TestApi, { organizationId, spareWebhookIds }: SampleTenant): Promise<void> {
  const at = { createdAt: menusMadeAt }
  const endpoint = { organizationId, name: 'Chat', url: 'https://hooks.example/in', ...at }
  await api.db.webhookEndpoint.createMany({
    data: spareWebhookIds.map((id) => ({
      ...endpoint,
      id,
      events: ['boot.failed'],
      secret: Buffer.alloc(32),
    })),
  })
  await api.db.webhookEvent.createMany({
    data: spareWebhookIds.map((id) => ({
      organizationId,
      id,
      type: 'ping',
      subject: id,
      payload: {},
      ...at,
    })),
  })
  const sent = { organizationId, state: 'delivered' as const, dueAt: menusMadeAt, ...at }
  await api.db.webhookDelivery.createMany({
    data: spareWebhookIds.map((id) => ({ ...sent, id, endpointId: id, eventId: id })),
  })
}
