import { beforeEach, expect, test } from 'vitest'
import { PlacedSite } from '../../test/placed-site.ts'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { CopiesView } from '../placement/schema.ts'
import { measureSpaces } from './measure-spaces.ts'
import type { SpaceView } from './schema.ts'

const site = useTestSite('admin')
let placed: PlacedSite

const gib = 1024 ** 3
const hourMs = 3_600_000
const totalBytes = 400 * gib
const start = new Date('2026-11-20T12:00:00Z')

beforeEach(async () => {
  site().api.clock.now = start
  placed = new PlacedSite(site())
  await placed.hold(site().edge)
})

async function hear(freeBytes: number, edge = site().edge) {
  const memory = { memoryTotalBytes: 1, memoryAvailableBytes: 1, fileCacheBytes: 1 }
  const store = { storeFreeBytes: freeBytes, storeTotalBytes: totalBytes }
  const machine = { loadAverage: 0, processors: 2, ...memory, ...store }
  const storeJobKinds = ['verify', 'pack', 'fetch', 'import', 'import_upload']
  expect((await edge.heartbeat({ machine, storeJobKinds })).status).toBe(200)
}

const run = () => measureSpaces({ db: site().api.serverDb, clock: site().api.clock.read })
/** Of somebody who has just signed in: days may have passed. */
async function get(edgeId = site().edge.edgeId): Promise<SpaceView> {
  const { api, tenant } = site()
  return query<SpaceView>(api, await signInAs(api, tenant.organizationId, 'viewer'), 'space.get', { edgeId })
}
const events = () => {
  const { organizationId } = site().tenant
  return site().api.db.webhookEvent.findMany({
    where: { organizationId, type: 'store.filling' },
    orderBy: { createdAt: 'asc' },
  })
}

/** The edge reports every six hours. */
async function pass(hours: number, freeAfter: (hour: number) => number) {
  for (let hour = 0; hour <= hours; hour += 6) {
    await hear(freeAfter(hour))
    await run()
    site().api.clock.advance(6 * hourMs)
  }
}

test('an edge that fills is warned of once, a week before nothing more fits, and again after it was over', async () => {
  // The reserve is 20 GiB: 30 GiB are usable, and five go each day.
  await pass(72, (hour) => (65 - (5 * hour) / 24) * gib)
  expect(await get()).toMatchObject({
    totalBytes,
    freeBytes: 50 * gib,
    usableBytes: 30 * gib,
    bytesPerDay: -5 * gib,
    warning: 'filling',
  })
  expect((await get()).samples).toHaveLength(13)
  const [told, ...more] = await events()
  expect(more).toEqual([])
  expect(JSON.stringify(told?.payload)).toContain('"reason":"filling"')
  await run()
  expect(await events()).toHaveLength(1)
  // Deletions make it free again: there is no warning, and the next one is another event.
  await hear(390 * gib)
  await run()
  expect(await get()).toMatchObject({ warning: null })
  await hear(10 * gib)
  await run()
  expect(await get()).toMatchObject({ warning: 'full', usableBytes: 0 })
  expect(await events()).toHaveLength(2)
})

test('too short a time says nothing; of each six hours one sample is kept, for 60 days', async () => {
  await hear(100 * gib)
  await Promise.all([run(), run()])
  await run()
  expect(await get()).toMatchObject({ bytesPerDay: null, fullAt: null, warning: null })
  expect((await get()).samples).toEqual([{ at: start.toISOString(), freeBytes: 100 * gib, totalBytes }])
  site().api.clock.advance(61 * 24 * hourMs)
  await run()
  // It was not heard lately: nothing is known of now.
  expect((await get()).samples).toEqual([])
})

test('an edge that has reported nothing has no figures', async () => {
  expect(await get()).toEqual({
    freeBytes: null,
    totalBytes: null,
    usableBytes: null,
    pendingBytes: 0,
    bytesPerDay: null,
    fullAt: null,
    warning: null,
    samples: [],
  })
})

test('a version that does not fit is not fetched, and the copies say how much is missing', async () => {
  const { organizationId, vdiskId, versionId } = site().tenant
  await site().api.db.vdiskVersion.update({
    where: { organizationId_id: { organizationId, id: versionId } },
    data: { manifestRoot: Uint8Array.from(Buffer.alloc(32, 1)), manifestCounter: 1 },
  })
  await site().revokeEdge(site().edge.edgeId)
  const maker = await placed.enrol()
  const second = await placed.enrol()
  await placed.hold(maker, versionId)
  const [pack] = await placed.jobsOf(maker)
  await placed.end(maker, pack)
  await site().api.db.difference.updateMany({ where: { organizationId }, data: { sizeBytes: 3n * BigInt(gib) } })
  await hear(6 * gib, second)
  expect(await placed.jobsOf(second)).toEqual([])
  const copy = async () =>
    (await site().query<CopiesView>('placement.copies', { vdiskId })).copies.find(
      ({ edgeId }) => edgeId === second.edgeId,
    )
  expect(await copy()).toMatchObject({
    state: 'lacks',
    waitsFor: 'space',
    untrusted: { message: 'it needs 6.3 GiB, and 6.0 GiB are free' },
  })
  await hear(7 * gib, second)
  expect(await placed.jobsOf(second)).toMatchObject([{ kind: 'fetch' }])
  expect(await copy()).toMatchObject({ state: 'fetching' })
  expect(await get(second.edgeId)).toMatchObject({ pendingBytes: 3 * gib, usableBytes: 0, warning: 'full' })
})

test('an upload that does not fit into the store of the edge is refused with both numbers', async () => {
  const { organizationId, vdiskId } = site().tenant
  const now = site().api.clock.now
  const upload = { name: 'linux.raw', sizeBytes: 10n * BigInt(gib), sha256: 'ab'.repeat(32), createdByName: 'x' }
  const { id: uploadId } = await site().api.db.upload.create({
    data: { organizationId, vdiskId, ...upload, createdAt: now, expiresAt: new Date(now.getTime() + hourMs) },
  })
  const importIt = () => site().tryMutation('version.import', { vdiskId, edgeId: site().edge.edgeId, uploadId })
  await hear(10 * gib)
  expect(await importIt()).toMatchObject({
    status: 409,
    text: expect.stringContaining('has 10.0 GiB free, and the import needs at least 10.3 GiB'),
  })
  expect(await site().api.db.vdiskVersion.count({ where: { organizationId } })).toBe(1)
  await hear(11 * gib)
  expect((await importIt()).status).toBe(200)
})
