import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import type { EdgeClient } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import type { DeviceDetail } from '../../device/schema.ts'
import type { VdiskDetail } from '../../vdisk/schema.ts'

const site = useTestSite('owner')
let second: EdgeClient

beforeEach(async () => {
  second = await site().enrolEdge()
})

type WriteCacheClass = 'device_ram' | 'edge' | 'edge_persistent' | 'private'

const keepWrites = (writeCache: WriteCacheClass) =>
  site().api.db.vdisk.updateMany({
    where: { organizationId: site().tenant.organizationId, id: site().tenant.vdiskId },
    data: { writeCache },
  })

/** Returns the edge's instructions: whether it writes, and the id of the edge that keeps the device's writes. */
async function told(edge: EdgeClient, deviceId = site().deviceId) {
  const { devices, homeEdges = [] } = await site().state(edge)
  const device = devices.find(({ id }) => id === deviceId)
  const home = device?.home === undefined ? null : (homeEdges[device.home] ?? null)
  return { home, writes: device?.writes ?? false }
}

async function beginMaintenance(deviceId: string) {
  const { organizationId, versionId, vdiskId } = site().tenant
  await site().api.db.vdiskVersion.update({
    where: { organizationId_id: { organizationId, id: versionId } },
    data: { manifestRoot: Uint8Array.from(Buffer.alloc(32, 1)), manifestCounter: 1 },
  })
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: deviceId } },
    data: { deviceType: 'maintenance' },
  })
  const { revision: vdiskRevision } = await site().query<VdiskDetail>('vdisk.get', { vdiskId })
  return site().mutate<{ id: string }>('version.startMaintenance', { versionId, vdiskRevision, deviceId })
}

/** Says that the edge's store holds the version. */
async function holds(edge: EdgeClient, versionId: string) {
  const sizes = { ownBytes: 1, sharedBytes: 0, reclaimableBytes: 1 }
  const root = Buffer.alloc(32, 1).toString('base64')
  const store = { id: randomUUID(), publicKey: root, format: 1 }
  const inventory = { scan: 1, isLast: true, versions: [{ versionId, state: 'present', root, ...sizes }] }
  const body = JSON.stringify({ store, inventory, jobs: [] })
  expect((await edge.send({ method: 'POST', path: '/edge/v1/store', body })).status).toBe(200)
}

test('of what outlives a boot all edges of a site are told the same home, and it stays', async () => {
  for (const chosen of ['device_ram', 'edge'] as const) {
    await keepWrites(chosen)
    expect(await told(second)).toEqual({ home: null, writes: false })
  }
  await keepWrites('private')
  const states = await Promise.all([told(second), told(site().edge), told(second), told(site().edge)])
  const home = states[0]?.home
  expect([second.edgeId, site().edge.edgeId]).toContain(home?.id)
  expect(states.every((state) => state.home?.id === home?.id)).toBe(true)
  const third = await site().enrolEdge()
  await holds(third, site().tenant.versionId)
  await keepWrites('edge_persistent')
  for (const edge of [third, second]) expect((await told(edge)).home).toEqual(home)
})

test('devices are shared out among the edges, to those first that hold their version', async () => {
  await keepWrites('private')
  await holds(second, site().tenant.versionId)
  for (const id of site().tenant.deviceIds) expect((await told(site().edge, id)).home?.id).toBe(second.edgeId)
})

test('where a device has written before the edge there is its home, though it was removed', async () => {
  const { organizationId } = site().tenant
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: site().deviceId } },
    data: { layerClass: 'private', layerEdgeId: second.edgeId },
  })
  await site().revokeEdge(second.edgeId)
  await keepWrites('private')
  expect((await told(site().edge)).home?.id).toBe(second.edgeId)
})

test('a maintenance version is written at the home of its device, and nowhere else from the first state on', async () => {
  const made = await beginMaintenance(site().deviceId)
  const states = await Promise.all([told(site().edge), told(second)])
  expect(states.filter(({ writes }) => writes)).toHaveLength(1)
  expect(new Set(states.map(({ home }) => home?.id)).size).toBe(1)
  const writer = states[0]?.writes ? site().edge : second
  expect((await told(writer)).home?.id).toBe(writer.edgeId)
  expect(made.id).toBeDefined()
})

const homeEdgeOf = async () => ((await told(site().edge)).home?.id === site().edge.edgeId ? site().edge : second)
const othersThan = (edge: EdgeClient) => (edge === second ? site().edge : second)
const move = (edge: EdgeClient, giveUp = false) =>
  site().tryMutation('device.moveHome', { deviceId: site().deviceId, edgeId: edge.edgeId, giveUp })
const home = async () => (await site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })).home

/** Heartbeat of an edge of this release, with the kinds of work it does. */
const speakUp = (edge: EdgeClient, ...kinds: string[]) =>
  edge.heartbeat({ storeJobKinds: ['verify', ...kinds], agentVersion: '9.9' })

async function endJob(edge: EdgeClient, jobId: string | undefined, state: 'done' | 'failed') {
  const job = { id: jobId, state, progressBytes: 0, totalBytes: 0, message: 'it keeps writes' }
  const body = JSON.stringify({ jobs: [job] })
  expect((await edge.send({ method: 'POST', path: '/edge/v1/store', body })).status).toBe(200)
}

test('another edge keeps the writes once the one that does has let go, and not while it keeps some', async () => {
  await keepWrites('private')
  const from = await homeEdgeOf()
  const to = othersThan(from)
  await speakUp(from)
  const old = await move(to)
  expect(old).toMatchObject({
    status: 409,
    text: expect.stringContaining('(release 9.9) does not support release_home. Update it'),
  })
  await speakUp(from, 'release_home')
  const order = async () => {
    const answer = await move(to)
    expect(answer.status).toBe(200)
    const jobId = (await home())?.next?.jobId ?? undefined
    // Neither begins anything meanwhile.
    expect((await told(from)).home?.id).toBe(to.edgeId)
    expect((await told(to)).home?.id).toBe(from.edgeId)
    expect((await site().state(from)).storeJobs).toMatchObject([
      { id: jobId, kind: 'release_home', deviceId: site().deviceId },
    ])
    return jobId
  }
  expect((await move(from)).text).toContain('already stores the writes of pc-01')
  const failedId = await order()
  expect(await home()).toMatchObject({ asked: { jobId: failedId, state: 'queued' } })
  await endJob(from, failedId, 'failed')
  expect((await told(from)).home?.id).toBe(from.edgeId)
  // Its result stays readable until it is requested again.
  const { since, asked } = (await home()) ?? {}
  expect(asked).toMatchObject({
    jobId: failedId,
    state: 'failed',
    endedAt: expect.any(String),
    untrusted: { message: 'it keeps writes' },
  })
  await site().mutate('storeJob.cancel', { jobId: await order() })
  expect(await home()).toMatchObject({
    edge: { id: from.edgeId },
    next: null,
    since,
    asked: { state: 'cancelled' },
  })
  const jobId = await order()
  expect((await move(to)).text).toContain('Cancel that move first')
  await endJob(from, jobId, 'done')
  for (const edge of [from, to]) expect((await told(edge)).home?.id).toBe(to.edgeId)
  expect(since).toEqual(expect.any(String))
  expect(await home()).toMatchObject({ edge: { id: to.edgeId }, asked: null, since: expect.any(String) })
  const { organizationId } = site().tenant
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: site().deviceId } },
    data: { layerClass: 'private', layerEdgeId: to.edgeId, layerBytes: 4096n },
  })
  expect((await move(from)).text).toContain('stores 4096 bytes of its private image')
})

test('what a removed edge kept is given up by an order that says so, and not before', async () => {
  await keepWrites('private')
  const from = await homeEdgeOf()
  const to = othersThan(from)
  const { organizationId } = site().tenant
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: site().deviceId } },
    data: { layerClass: 'private', layerEdgeId: from.edgeId, layerBytes: 4096n },
  })
  expect((await move(to, true)).text).toContain('was not removed')
  await site().revokeEdge(from.edgeId)
  expect((await told(to)).home?.id).toBe(from.edgeId)
  expect((await move(to)).text).toMatch(/4096 bytes of its private image.*permanently lost/)
  expect((await move(from, true)).status).toBe(400)
  expect((await move(to, true)).status).toBe(200)
  expect((await told(to)).home?.id).toBe(to.edgeId)
  expect(await home()).toMatchObject({ edge: { id: to.edgeId }, next: null, keeps: null, asked: null })
  const { siteEdges } = await site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })
  expect(siteEdges.map(({ id }) => id)).toEqual([to.edgeId])
  const { items } = await site().query<{ items: { before: unknown; after: unknown }[] }>('audit.list', {
    action: 'device.moveHome',
  })
  expect(items[0]).toMatchObject({ after: { givenUp: '4096 bytes of its private image' } })
})
