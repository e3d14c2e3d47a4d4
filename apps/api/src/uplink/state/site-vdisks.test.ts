import { randomUUID } from 'node:crypto'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { useTestSite } from '../../../test/test-site.ts'

const site = useTestSite('image_manager')
const minuteMs = 60_000

interface VersionRow {
  id: string
  number: number
}

async function addVersion(number: number, more: Record<string, unknown> = {}): Promise<VersionRow> {
  const { organizationId, vdiskId } = site().tenant
  return site().api.db.vdiskVersion.create({
    data: {
      organizationId,
      vdiskId,
      number,
      sizeBytes: 512,
      diskPath: `a/${number}/disk.raw`,
      commandLine: '',
      ...more,
    },
    select: { id: true, number: true },
  })
}

async function setVdisk(data: Record<string, unknown>): Promise<void> {
  const { organizationId, vdiskId } = site().tenant
  await site().api.db.vdisk.update({
    where: { organizationId_id: { organizationId, id: vdiskId } },
    data,
    select: { id: true },
  })
}

async function setType(index: number, deviceType: 'test' | 'maintenance'): Promise<string> {
  const { organizationId, deviceIds } = site().tenant
  const id = deviceIds[index] ?? ''
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id } },
    data: { deviceType },
    select: { id: true },
  })
  return id
}

const bootedBy = (state: DesiredState, id: string) => state.devices.find((device) => device.id === id)

test('each type of device gets its version, and only the writer writes', async () => {
  const tested = await addVersion(2, { state: 'test' })
  const parentVersionId = site().tenant.versionId
  const written = await addVersion(3, { state: 'maintenance', sealedAt: null, parentVersionId })
  const [tester, writer, idle] = [
    await setType(0, 'test'),
    await setType(1, 'maintenance'),
    await setType(2, 'maintenance'),
  ]
  await setVdisk({ maintenanceDeviceId: writer })
  const state = await site().state()
  expect(bootedBy(state, tester)).toMatchObject({ versionId: tested.id, deviceType: 'test' })
  expect(bootedBy(state, writer)).toMatchObject({ versionId: written.id, writes: true })
  expect(bootedBy(state, idle)).toMatchObject({ versionId: tested.id, deviceType: 'maintenance' })
  expect(bootedBy(state, idle)).not.toHaveProperty('writes')
  const production = bootedBy(state, site().tenant.deviceIds[3] ?? '')
  expect(production).toMatchObject({ versionId: parentVersionId })
  expect(production).not.toHaveProperty('deviceType')
  // The version that production devices boot comes first, also for edges that give it to unknown machines.
  expect(state.vdisks[0]?.versions.map(({ number }) => number)).toEqual([1, 3, 2])
  expect(state.vdisks[0]?.versions[1]?.layerAboveVersionId).toBe(parentVersionId)
})

test('a version that is being sealed is written by nobody', async () => {
  const parentVersionId = site().tenant.versionId
  await addVersion(2, { state: 'maintenance', sealedAt: null, sealAskedAt: new Date(), parentVersionId })
  const writer = await setType(0, 'maintenance')
  await setVdisk({ maintenanceDeviceId: writer })
  const state = await site().state()
  expect(bootedBy(state, writer)).toMatchObject({ versionId: parentVersionId })
  expect(state.vdisks[0]?.versions.map(({ number }) => number)).toEqual([1])
})

test('a release to come is said with its instant, and is the default from then on without anybody doing anything', async () => {
  const { clock } = site().api
  const releasedAt = new Date(clock.read().getTime() + minuteMs)
  const next = await addVersion(2, { releasedAt })
  await setVdisk({ pendingVersionId: next.id })
  const before = await site().state()
  const { versionId } = site().tenant
  expect(before.vdisks[0]).toMatchObject({
    defaultVersionId: versionId,
    pending: { versionId: next.id, atUnixMs: releasedAt.getTime() },
  })
  expect(new Set(before.devices.map((device) => device.versionId))).toEqual(new Set([versionId]))
  clock.advance(minuteMs)
  const after = await site().state()
  expect(after.vdisks[0]).toMatchObject({ defaultVersionId: next.id })
  expect(after.vdisks[0]).not.toHaveProperty('pending')
  expect(new Set(after.devices.map((device) => device.versionId))).toEqual(new Set([next.id]))
  expect(after.counter).toBeGreaterThan(before.counter)
})

test('an override, a write cache, a manifest and the edge’s own jobs are said', async () => {
  const root = Uint8Array.from({ length: 32 }, (_, index) => index)
  const next = await addVersion(2, { manifestRoot: root, manifestCounter: 7, diskPath: 'versions/x' })
  const { versionId, vdiskId, organizationId } = site().tenant
  await setVdisk({
    overrideVersionId: versionId,
    writeCache: 'edge_persistent',
    writeCacheLimitBytes: 2n ** 31n,
    writeCacheFull: 'read_only',
  })
  const merged = await addVersion(3, { state: 'test', sealedAt: null })
  const other = await site().enrolEdge()
  const id = randomUUID()
  await site().api.db.storeJob.create({
    data: {
      organizationId,
      id,
      edgeId: site().edge.edgeId,
      kind: 'merge',
      vdiskId,
      versionId: next.id,
      intoVersionId: merged.id,
      askedByName: 'x',
      askedAt: new Date(),
    },
  })
  const state = await site().state()
  expect(state.vdisks[0]).toMatchObject({
    defaultVersionId: next.id,
    overrideVersionId: versionId,
    writeCache: { class: 'edge_persistent', limitBytes: 2 ** 31, full: 'read_only' },
  })
  expect(state.vdisks[0]?.versions).toMatchObject([
    { number: 1 },
    { number: 2, manifest: { root: Buffer.from(root).toString('base64'), counter: 7 } },
  ])
  expect(state.storeJobs).toEqual([
    { id, kind: 'merge', vdiskId, versionId: next.id, intoVersionId: merged.id, number: 3 },
  ])
  expect(await site().state(other)).not.toHaveProperty('storeJobs')
})

test('a state without any of it is as edges of before know it', async () => {
  const state = await site().state()
  expect(state).not.toHaveProperty('storeJobs')
  expect(Object.keys(state.vdisks[0] ?? {}).sort()).toEqual(['defaultVersionId', 'id', 'name', 'versions'])
  expect(Object.keys(state.devices[0] ?? {}).sort()).toEqual(['enabled', 'id', 'mac', 'name', 'versionId'])
})

test('a version registered for testing is what test devices boot, and no other', async () => {
  const tester = await setType(0, 'test')
  const { vdiskId, versionId } = site().tenant
  const files = { diskPath: 'a/2/disk.raw', sizeBytes: 512 }
  const { id } = await site().mutate<{ id: string }>('vdisk.registerVersion', {
    vdiskId,
    ...files,
    state: 'test',
  })
  const state = await site().state()
  expect(bootedBy(state, tester)?.versionId).toBe(id)
  expect(bootedBy(state, site().tenant.deviceIds[1] ?? '')?.versionId).toBe(versionId)
})
