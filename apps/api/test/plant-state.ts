import { randomBytes } from 'node:crypto'
import type { TestApi } from './test-api.ts'
import type { TestTenant } from './test-tenant.ts'

const minuteMs = 60_000

/**
 * Makes a site whose desired state has some of everything, and a second one of the farm that shares little with it.
 * @returns the ids of both
 */
export async function plantState(api: TestApi, tenant: TestTenant): Promise<[string, string]> {
  const { db, clock } = api
  const { organizationId, farmId, siteId, collectionId, deviceIds, vdiskId, versionId } = tenant
  const now = clock.read()
  const place = { organizationId, farmId }
  const [first = '', second = '', third = '', fourth = '', fifth = ''] = deviceIds
  const { makeEdge, makeVdisk } = makersOf(api, tenant)
  const other = await db.site.create({ data: { ...place, name: 'Other', timeZone: 'UTC' } })
  const edge = await makeEdge(siteId, 'edge-1')
  await makeEdge(siteId, 'edge-02')
  const away = await makeEdge(other.id, 'edge-003')
  await db.edge.update({
    where: { organizationId_id: { organizationId, id: edge.id } },
    data: { rotateKeyFrom: edge.publicKey, subnets: ['192.0.2.0/24'] },
  })
  const own = await makeVdisk('Of one device')
  const shown = await makeVdisk('Of a menu')
  const elsewhere = await makeVdisk('Of the other site')
  await db.vdisk.update({
    where: { organizationId_id: { organizationId, id: vdiskId } },
    data: { writeCache: 'edge_persistent', writeCacheLimitBytes: 7, defaultVersionId: versionId },
  })
  const awayCollection = await db.collection.create({
    data: { organizationId, siteId: other.id, name: 'Away', vdiskId: elsewhere.vdiskId },
  })
  await db.device.create({
    data: {
      organizationId,
      siteId: other.id,
      collectionId: awayCollection.id,
      name: 'away',
      mac: '02:bf:00:00:01:01',
      // It was moved here: its home is an edge of the first site.
      homeEdgeId: edge.id,
      nextHomeEdgeId: away.id,
    },
  })
  await db.vdisk.update({
    where: { organizationId_id: { organizationId, id: elsewhere.vdiskId } },
    data: { writeCache: 'private' },
  })
  const menuOf = (name: string, title: string) => makeMenu(api, tenant, { name, title, shown })
  const ofCollection = await menuOf('Of a collection', 'A')
  const ofDevice = await menuOf('Of a device', 'B')
  await db.collection.update({
    where: { organizationId_id: { organizationId, id: collectionId } },
    data: { bootMenuId: ofCollection.id, bootProgramSet: 'ipxe' },
  })
  const change = (id: string, data: object) =>
    db.device.update({ where: { organizationId_id: { organizationId, id } }, data })
  await change(first, { bootMenuChoice: 'own', bootMenuId: ofDevice.id, bootProgramSet: 'grub' })
  await change(second, { vdiskId: own.vdiskId, tags: ['lab'] })
  await change(third, { deviceType: 'test' })
  await change(fourth, { deviceType: 'maintenance' })
  await change(fifth, { homeEdgeId: edge.id, nextHomeEdgeId: away.id })
  const seen = { organizationId, siteId, edgeId: edge.id, asked: 'dhcp' as const, firstSeenAt: now, lastSeenAt: now }
  await db.discoveredDevice.create({ data: { ...seen, mac: '02:bf:00:00:02:01', requests: 1, ignoredAt: now } })
  await plantWork(api, tenant, { own, edgeId: edge.id, awayEdgeId: away.id, awayCollectionId: awayCollection.id })
  return [siteId, other.id]
}

interface Version {
  vdiskId: string
  versionId: string
}

function makersOf({ db, clock }: TestApi, { organizationId, farmId }: TestTenant) {
  const now = clock.read()
  const makeEdge = (at: string, name: string) =>
    db.edge.create({
      data: {
        organizationId,
        siteId: at,
        name,
        publicKey: randomBytes(32).toString('base64'),
        arch: 'x86_64',
        agentVersion: '0.1.0',
        enrolledAt: now,
        heartbeatAt: now,
        heartbeat: { address: `192.0.2.${name.length}`, peerPort: 1, streamPort: 2 },
      },
    })
  const makeVdisk = async (name: string) => {
    const vdisk = await db.vdisk.create({ data: { organizationId, farmId, name } })
    const files = { sizeBytes: 512, diskPath: 'd', kernelPath: 'k', initrdPath: 'i', commandLine: 'quiet' }
    const version = await db.vdiskVersion.create({
      data: {
        organizationId,
        vdiskId: vdisk.id,
        number: 1,
        manifestRoot: randomBytes(32),
        manifestCounter: 1,
        ...files,
      },
    })
    return { vdiskId: vdisk.id, versionId: version.id }
  }
  return { makeEdge, makeVdisk }
}

interface MenuFields {
  name: string
  title: string
  shown: Version
}

function makeMenu({ db, clock }: TestApi, { organizationId, farmId }: TestTenant, { name, title, shown }: MenuFields) {
  const now = clock.read()
  return db.bootMenu.create({
    data: {
      organizationId,
      farmId,
      name,
      timeoutMs: 5_000,
      defaultPosition: 1,
      createdAt: now,
      updatedAt: now,
      entries: {
        create: [
          { position: 0, title: 'Local disk' },
          { position: 1, title, vdiskId: shown.vdiskId, versionId: shown.versionId },
          { position: 2, title: 'Newest', vdiskId: shown.vdiskId },
        ],
      },
    },
  })
}

interface WorkOf {
  own: Version
  edgeId: string
  awayEdgeId: string
  awayCollectionId: string
}

/** Plants a boot of an experiment that its edge waits for. */
async function plantTrial({ db, clock }: TestApi, { organizationId, siteId, deviceIds }: TestTenant, untilAt: Date) {
  const now = clock.read()
  const plan = { factors: [], cells: [[], ['codec=off']], repetitions: 1, atOnce: 1, bootSeconds: 60, seed: 1 }
  const { id: experimentId } = await db.experiment.create({
    data: { organizationId, siteId, name: 'E', ...plan, createdByName: 'A', createdAt: now, endsAt: untilAt },
  })
  const place = { organizationId, experimentId, siteId, deviceId: deviceIds[0] ?? '' }
  const trial = { position: 0, repetition: 0, cell: 1, settings: ['codec=off'], state: 'ordered' as const }
  await db.experimentTrial.create({ data: { ...place, ...trial, orders: 1, orderedAt: now, untilAt } })
}

/** Plants power-ons, power orders, schedules and jobs of stores. */
async function plantWork(api: TestApi, tenant: TestTenant, { own, ...work }: WorkOf): Promise<void> {
  const { db, clock } = api
  const { organizationId, farmId, siteId, collectionId, deviceIds } = tenant
  const [first = '', second = ''] = deviceIds
  const now = clock.read()
  const later = new Date(now.getTime() + 60 * minuteMs)
  const wish = { organizationId, requestedAt: now, expiresAt: later }
  await db.powerOn.create({ data: { ...wish, deviceId: first } })
  await db.powerOrder.create({ data: { ...wish, deviceId: second, order: 'restart' } })
  const scheduleOf = (name: string, at: string | null, targets: object[]) =>
    db.schedule.create({
      data: {
        organizationId,
        farmId,
        siteId: at,
        name,
        ratePerMinute: 5,
        kind: 'once',
        timeZone: 'UTC',
        instants: [later],
        preparedUntil: now,
        createdAt: now,
        updatedAt: now,
        targets: { create: targets.map((target, position) => ({ position, ...target })) as never },
      },
    })
  await scheduleOf('Of the site', siteId, [
    { kind: 'device', deviceId: first },
    { kind: 'collection', collectionId },
    { kind: 'tag', tag: 'lab' },
  ])
  await scheduleOf('Of the farm', null, [{ kind: 'collection', collectionId: work.awayCollectionId }])
  await plantTrial(api, tenant, later)
  const makeJob = (edgeId: string, job: object) =>
    db.storeJob.create({ data: { organizationId, edgeId, askedByName: 'A', askedAt: now, ...job } as never })
  await makeJob(work.edgeId, { kind: 'import', ...own, sourcePath: 'a.raw', bootFiles: 'none' })
  await makeJob(work.edgeId, { kind: 'drop_layer', deviceId: first, layerClass: 'edge' })
  const difference = await db.difference.create({
    data: { organizationId, ...own, createdAt: now, neededAt: now, sizeBytes: 7, listSha256: 'ab'.repeat(32) },
  })
  const differenceId = difference.id
  await makeJob(work.awayEdgeId, {
    kind: 'pack',
    ...own,
    differenceId,
    baseVersionId: own.vdiskId,
    toControlPlane: true,
  })
  await makeJob(work.edgeId, {
    kind: 'fetch',
    ...own,
    differenceId,
    sourceEdgeIds: [work.awayEdgeId],
    differenceSizeBytes: 7,
    rateBytesPerSecond: 1000,
  })
  await db.edgeDifference.create({ data: { organizationId, edgeId: work.awayEdgeId, differenceId, keptSince: now } })
  await makeJob(work.awayEdgeId, { kind: 'merge', ...own, intoVersionId: own.versionId })
}
