import { randomUUID } from 'node:crypto'
import type { Prisma } from '@bootfarm/db'
import { type Sample, type SampleTenant, type VersionSample, type VersionSpares, versionKinds } from './sample.ts'
import type { TestApi } from './test-api.ts'
import type { TestTenant } from './test-tenant.ts'

const spareCount = 24

const take = (kind: VersionSample, name: 'vdiskId' | 'versionId') => (tenant: SampleTenant) =>
  tenant.versionSpares.vdisks[kind].pop()?.[name] ?? ''
const vdiskRevision = { vdiskRevision: 1 }
const sample = (kind: VersionSample, input: Sample['input']): Sample => ({
  idName: 'versionId',
  ...(input ? { input } : {}),
  ownId: take(kind, 'versionId'),
})
const ofVdisk = (kind: VersionSample, input: Sample['input']): Sample => ({
  idName: 'vdiskId',
  ...(input ? { input } : {}),
  ownId: take(kind, 'vdiskId'),
})

export const versionSamples: Record<string, Sample> = {
  'version.get': { idName: 'versionId', ownId: (tenant) => tenant.versionId },
  'version.preview': {
    idName: 'versionId',
    input: { action: 'promote' },
    ownId: (tenant) => tenant.versionId,
  },
  'version.startMaintenance': sample('startMaintenance', (tenant: SampleTenant, id: string) => ({
    ...vdiskRevision,
    deviceId: tenant.versionSpares.writers[id] ?? tenant.deviceIds[0],
  })),
  'version.seal': sample('seal', { revision: 1 }),
  'version.discardMaintenance': sample('discardMaintenance', { revision: 1 }),
  'version.promote': sample('promote', vdiskRevision),
  'version.cancelRelease': ofVdisk('cancelRelease', { revision: 1 }),
  'version.promotion': { idName: 'vdiskId', ownId: (tenant) => tenant.vdiskId },
  'version.cancelPromotion': ofVdisk('cancelPromotion', { revision: 1 }),
  'version.revert': sample('revert', vdiskRevision),
  'version.override': sample('override', vdiskRevision),
  'version.clearOverride': ofVdisk('clearOverride', { revision: 1 }),
  'version.merge': sample('merge', { ...vdiskRevision, into: 'base' }),
  'version.import': ofVdisk('import', ({ edgeId }: SampleTenant) => ({
    edgeId,
    sourcePath: 'imports/a.raw',
  })),
  'version.adopt': ofVdisk('adopt', ({ edgeId, versionSpares }: SampleTenant, id: string) => ({
    edgeId,
    versionId: versionSpares.images[id] ?? randomUUID(),
  })),
  'version.clearBootProfile': sample('clearBootProfile', undefined),
  'vdisk.updateWriteCache': ofVdisk('writeCache', {
    revision: 1,
    class: 'edge',
    limitBytes: null,
    full: 'stop',
  }),
  'upload.list': { idName: 'vdiskId', ownId: (tenant) => tenant.versionSpares.vdisks.upload[0]?.vdiskId ?? '' },
  'upload.get': {
    idName: 'vdiskId',
    input: (_tenant, id) => ({ uploadId: id }),
    ownId: (tenant) => tenant.versionSpares.vdisks.upload[0]?.vdiskId ?? '',
  },
  'upload.create': {
    idName: 'vdiskId',
    input: { name: 'linux.raw', sizeBytes: 4096 },
    ownId: (tenant) => tenant.versionSpares.vdisks.upload[0]?.vdiskId ?? '',
  },
  'upload.remove': ofVdisk('upload', (_tenant: SampleTenant, id: string) => ({ uploadId: id })),
  'placement.get': { idName: 'vdiskId', ownId: (tenant) => tenant.vdiskId },
  'placement.set': ofVdisk('placement', { revision: 1, rules: { others: { edges: 1 } } }),
  'placement.copies': { idName: 'vdiskId', ownId: (tenant) => tenant.vdiskId },
  'placement.getOfFarm': { idName: 'farmId', ownId: (tenant) => tenant.farmId },
  'placement.setOfFarm': {
    idName: 'farmId',
    input: { revision: 1, rules: { others: { edges: 1 } } },
    ownId: (tenant) => tenant.spares.objects.farm.pop() ?? '',
  },
  'retention.get': { idName: 'vdiskId', ownId: (tenant) => tenant.vdiskId },
  'retention.preview': { idName: 'vdiskId', input: { keptReleases: 3 }, ownId: (tenant) => tenant.vdiskId },
  'retention.set': ofVdisk('retention', { revision: 1, keptReleases: 3 }),
  'cleaning.get': { idName: 'edgeId', ownId: (tenant) => tenant.edgeId },
  'cleaning.set': {
    idName: 'edgeId',
    input: { revision: 1, mode: 'after_deletions', window: { from: '01:00', to: '05:00' } },
    ownId: (tenant) => tenant.edgeId,
  },
  'space.get': { idName: 'edgeId', ownId: (tenant) => tenant.edgeId },
  'load.ofEdge': { idName: 'edgeId', ownId: (tenant) => tenant.edgeId },
  'load.ofSite': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'prediction.run': {
    idName: 'siteId',
    input: ({ versionId }: SampleTenant) => ({ versionId }),
    ownId: (tenant) => tenant.siteId,
  },
  'load.capacity': { idName: 'edgeId', ownId: (tenant) => tenant.edgeId },
  'diskCapture.get': { idName: 'deviceId', ownId: (tenant) => tenant.deviceIds[0] ?? '' },
  'diskCapture.start': {
    idName: 'deviceId',
    input: ({ farmId, versionSpares }: SampleTenant) => ({
      revision: 1,
      farmId,
      name: `Captured ${randomUUID()}`,
      bootVersionId: versionSpares.vdisks.merge[0]?.versionId,
    }),
    ownId: (tenant) => tenant.versionSpares.captures.start.pop() ?? '',
  },
  'diskCapture.answer': {
    idName: 'deviceId',
    input: { disk: 'sda' },
    ownId: (tenant) => tenant.versionSpares.captures.answer.pop() ?? '',
  },
  'diskCapture.cancel': {
    idName: 'deviceId',
    ownId: (tenant) => tenant.versionSpares.captures.cancel.pop() ?? '',
  },
  'storeJob.list': {},
  'storeJob.get': { idName: 'jobId', ownId: (tenant) => tenant.versionSpares.jobIds[0] ?? '' },
  'storeJob.start': { idName: 'edgeId', input: { kind: 'verify' }, ownId: (tenant) => tenant.edgeId },
  'storeJob.cancel': { idName: 'jobId', ownId: (tenant) => tenant.versionSpares.jobIds.pop() ?? '' },
}

const bootProfile = { hardware: 'any', boots: 3, readAheadBytes: 4096, units: 1 }
const root = Uint8Array.from({ length: 32 }, () => 7)

/** A few statements for all of them. */
export async function createVersionSpares(
  { db, clock }: Pick<TestApi, 'db' | 'clock'>,
  { organizationId, farmId, siteId, collectionId, edgeId }: TestTenant & { edgeId: string },
): Promise<VersionSpares> {
  const writers: Record<string, string> = {}
  const askedAt = clock.now
  const vdisks = await createVdisks(db, { organizationId, farmId }, askedAt)
  const stored = { state: 'present' as const, ownBytes: 1n, sharedBytes: 1n, reclaimableBytes: 1n, scan: 1n }
  await db.edgeVersion.createMany({
    data: (['merge', 'seal', 'clearBootProfile'] as const).flatMap((kind) =>
      vdisks[kind].map(({ versionId }) => ({
        organizationId,
        edgeId,
        versionId,
        reportedAt: askedAt,
        ...stored,
        isLayer: kind === 'seal',
        ...(kind === 'clearBootProfile' ? { bootProfiles: [bootProfile] } : {}),
      })),
    ),
  })
  const images = Object.fromEntries(vdisks.adopt.map(({ vdiskId }) => [vdiskId, randomUUID()]))
  await db.edgeImage.createMany({
    data: Object.values(images).map((versionId) =>
      Object.assign({ organizationId, edgeId, versionId, root, reportedAt: askedAt }, stored),
    ),
  })
  await createUploads(db, { organizationId, vdisks: vdisks.upload, askedAt })
  await createPromotions(db, { organizationId, vdisks: vdisks.cancelPromotion, askedAt })
  await db.device.createMany({
    data: vdisks.startMaintenance.map(({ vdiskId, versionId }, index) => {
      const id = randomUUID()
      writers[versionId] = id
      return {
        organizationId,
        id,
        siteId,
        collectionId,
        name: `writer-${index}`,
        vdiskId,
        deviceType: 'maintenance' as const,
        mac: `02:bf:00:00:fe:${index.toString(16).padStart(2, '0')}`,
      }
    }),
  })
  const jobIds = Array.from({ length: spareCount }, () => randomUUID())
  await db.storeJob.createMany({
    data: jobIds.map((id) => ({ organizationId, id, edgeId, kind: 'gc' as const, askedByName: 'x', askedAt })),
  })
  const place = { organizationId, siteId, collectionId }
  const layer = { layerClass: 'private' as const, layerEdgeId: edgeId, layerBytes: 4096n }
  const layeredIds = await createDevices(db, { ...place, ...layer }, 'layered')
  const homedIds = await createDevices(db, { ...place, homeEdgeId: randomUUID() }, 'homed')
  const { vdiskId = '', versionId: bootVersionId = '' } = vdisks.merge[0] ?? {}
  const captures = await createCaptures(db, { ...place, edgeId, vdiskId, bootVersionId, askedAt })
  return { vdisks, writers, images, jobIds, layeredIds, homedIds, captures }
}

interface SampleCaptures {
  organizationId: string
  siteId: string
  collectionId: string
  edgeId: string
  vdiskId: string
  bootVersionId: string
  askedAt: Date
}

/** Each of another device: it waits for its boot, or for a person who names one of its disks. */
async function createCaptures(
  db: TestApi['db'],
  { siteId, collectionId, ...ids }: SampleCaptures,
): Promise<VersionSpares['captures']> {
  const place = { organizationId: ids.organizationId, siteId, collectionId }
  const captures = {
    start: await createDevices(db, place, 'captured'),
    cancel: await createDevices(db, place, 'copied'),
    answer: await createDevices(db, place, 'asking'),
  }
  const by = { askedByKind: 'person', askedByName: 'x' }
  const common = { isNewVdisk: false, disk: 'auto', note: '', waitSeconds: 3600, ...by }
  const deadlineAt = new Date(ids.askedAt.getTime() + 3_600_000)
  const rowOf = (deviceId: string, more: { state: string; disks?: string[] }) =>
    Object.assign({ deviceId, deadlineAt }, common, ids, more)
  await db.diskCapture.createMany({
    data: [
      ...captures.cancel.map((id) => rowOf(id, { state: 'waiting' })),
      ...captures.answer.map((id) => rowOf(id, { state: 'asking', disks: ['sda'] })),
    ],
  })
  return captures
}

interface Farm {
  organizationId: string
  farmId: string
}

interface SampleUploads {
  organizationId: string
  vdisks: { vdiskId: string; versionId: string }[]
  askedAt: Date
}

/** Each waits. */
async function createPromotions(db: TestApi['db'], { organizationId, vdisks, askedAt }: SampleUploads) {
  await db.waitingPromotion.createMany({
    data: vdisks.map((ids) =>
      Object.assign({ organizationId, step: 'promote', askedAt, askedByName: 'x', waitsUntil: askedAt }, ids),
    ),
  })
}

/** Each has the id of its vDisk. */
async function createUploads(db: TestApi['db'], { organizationId, vdisks, askedAt }: SampleUploads) {
  await db.upload.createMany({
    data: vdisks.map(({ vdiskId }) => ({
      organizationId,
      id: vdiskId,
      vdiskId,
      name: 'linux.raw',
      sizeBytes: 4096n,
      createdByName: 'x',
      createdAt: askedAt,
      expiresAt: new Date(askedAt.getTime() + 86_400_000),
    })),
  })
}

async function createVdisks(db: TestApi['db'], { organizationId, farmId }: Farm, now: Date) {
  const vdisks = {} as VersionSpares['vdisks']
  const releasedAt = new Date(now.getTime() + 86_400_000)
  const sealed = { manifestRoot: root, manifestCounter: 1n }
  const shapes: Record<VersionSample, object> = {
    startMaintenance: sealed,
    seal: { state: 'maintenance', sealedAt: null },
    discardMaintenance: { state: 'maintenance', sealedAt: null },
    promote: { state: 'test' },
    cancelRelease: { releasedAt },
    cancelPromotion: { state: 'test' },
    revert: {},
    override: {},
    clearOverride: {},
    merge: { ...sealed, kernelSha256: 'ab'.repeat(32) },
    import: {},
    writeCache: {},
    clearBootProfile: sealed,
    adopt: {},
    upload: {},
    placement: {},
    retention: {},
  }
  for (const kind of versionKinds) {
    vdisks[kind] = Array.from({ length: spareCount }, () => ({
      vdiskId: randomUUID(),
      versionId: randomUUID(),
    }))
    await db.vdisk.createMany({
      data: vdisks[kind].map(({ vdiskId, versionId }) => ({
        organizationId,
        id: vdiskId,
        farmId,
        name: vdiskId,
        ...(kind === 'cancelRelease' ? { pendingVersionId: versionId } : {}),
        ...(kind === 'clearOverride' ? { overrideVersionId: versionId } : {}),
      })),
    })
    const file = { sizeBytes: 512n, diskPath: 'spare', commandLine: '' }
    await db.vdiskVersion.createMany({
      data: vdisks[kind].flatMap(({ vdiskId, versionId }) => [
        { organizationId, id: versionId, vdiskId, number: 1, ...file, ...shapes[kind] },
        ...(kind === 'revert' ? [{ organizationId, id: randomUUID(), vdiskId, number: 2, ...file }] : []),
      ]),
    })
  }
  return vdisks
}

const macBytes = { layered: 'fd', homed: 'fc', captured: 'e7', copied: 'e6', asking: 'e5' }

async function createDevices(
  db: TestApi['db'],
  fields: Omit<Prisma.DeviceCreateManyInput, 'id' | 'name' | 'mac'>,
  kind: keyof typeof macBytes,
): Promise<string[]> {
  const ids = Array.from({ length: spareCount }, () => randomUUID())
  await db.device.createMany({
    data: ids.map((id, index) => ({
      ...fields,
      id,
      name: `${kind}-${index}`,
      mac: `02:bf:00:00:${macBytes[kind]}:${index.toString(16).padStart(2, '0')}`,
    })),
  })
  return ids
}
