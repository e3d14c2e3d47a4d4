import { beforeEach, expect, test } from 'vitest'
import type { EdgeClient } from '../../test/edge-client.ts'
import { PlacedSite } from '../../test/placed-site.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { VersionPreview } from '../vdisk/version-schema.ts'
import type { CopiesView, PlacementView } from './schema.ts'

const site = useTestSite('admin')
let placed: PlacedSite
let maker: EdgeClient
let second: EdgeClient

beforeEach(async () => {
  placed = new PlacedSite(site())
  const { organizationId, versionId } = site().tenant
  await site().api.db.vdiskVersion.update({
    where: { organizationId_id: { organizationId, id: versionId } },
    data: { manifestRoot: Uint8Array.from(Buffer.alloc(32, 1)), manifestCounter: 1 },
  })
  await site().revokeEdge(site().edge.edgeId)
  maker = await placed.enrol()
  second = await placed.enrol()
  await placed.hold(maker, versionId)
})

const all = { edges: null, rateBytesPerSecond: null, window: null }
const get = () => site().query<PlacementView>('placement.get', { vdiskId: site().tenant.vdiskId })
const set = (revision: number, rules: object | null, cookie = site().cookie) =>
  site().tryMutation('placement.set', { vdiskId: site().tenant.vdiskId, revision, rules }, cookie)
const copies = () => site().query<CopiesView>('placement.copies', { vdiskId: site().tenant.vdiskId })
const copyAt = async (edge: EdgeClient) => (await copies()).copies.find(({ edgeId }) => edgeId === edge.edgeId)

test('a vDisk has its farm’s placement until it gets its own, which can be taken back', async () => {
  const { farmId, siteId } = site().tenant
  expect(await get()).toEqual({ revision: 1, isInherited: true, others: all, sites: [] })
  const farm = { farmId, revision: 1, rules: { others: { edges: 2 }, sites: [] } }
  expect((await site().tryMutation('placement.setOfFarm', farm)).status).toBe(200)
  expect(await site().query('placement.getOfFarm', { farmId })).toMatchObject({ revision: 2, isInherited: false })
  expect(await get()).toMatchObject({ revision: 1, isInherited: true, others: { edges: 2 } })
  const window = { from: '22:00', to: '06:00' }
  const rules = { others: null, sites: [{ siteId, edges: 1, rateBytesPerSecond: 5000, window }] }
  expect((await set(1, rules)).status).toBe(200)
  const own = { revision: 2, isInherited: false, others: null }
  expect(await get()).toMatchObject({ ...own, sites: [{ siteId, edges: 1, rateBytesPerSecond: 5000, window }] })
  // Somebody else has not seen it.
  expect(await set(1, null)).toMatchObject({ status: 409, text: expect.stringContaining('changed in the meantime') })
  expect((await set(2, null)).status).toBe(200)
  expect(await get()).toMatchObject({ revision: 3, isInherited: true, others: { edges: 2 }, sites: [] })
  const { organizationId, vdiskId } = site().tenant
  const audited = await site().api.db.auditEntry.findMany({ where: { organizationId, action: 'placement.set' } })
  expect(audited.map(({ objectId }) => objectId)).toEqual([vdiskId, vdiskId])
})

test('rules that cannot be are refused, and so is a change by somebody who only reads', async () => {
  const { siteId } = site().tenant
  const other = await site().other('admin')
  for (const [rules, why] of [
    [{ others: { edges: 17 } }, 'at most 16 edges'],
    [{ others: { edges: -1 } }, ''],
    [{ others: { ...all, rateBytesPerSecond: 10 } }, 'at least 1024 bytes'],
    [{ others: { ...all, window: { from: '9:00', to: '10:00' } } }, 'as HH:MM'],
    [{ others: { ...all, window: { from: '09:00', to: '09:00' } } }, 'ends when it begins'],
    [
      {
        others: null,
        sites: [
          { siteId, ...all },
          { siteId, ...all },
        ],
      },
      'named twice',
    ],
    [{ others: null, sites: [{ siteId: other.tenant.siteId, ...all }] }, 'does not have one of these sites'],
  ] as const)
    expect(await set(1, rules)).toMatchObject({ status: 400, text: expect.stringContaining(why) })
  expect(await get()).toMatchObject({ isInherited: true })
  const viewer = await signInAs(site().api, site().tenant.organizationId, 'viewer')
  expect((await set(1, { others: null }, viewer)).status).toBe(403)
})

test('each version is shown at each edge that holds it or is to hold it, with its progress and what it waits for', async () => {
  const { versionId } = site().tenant
  expect(await copyAt(maker)).toMatchObject({ versionId, state: 'holds', waitsFor: null })
  expect(await copyAt(second)).toMatchObject({ versionId, state: 'lacks', waitsFor: 'packing' })
  const [pack] = await placed.jobsOf(maker)
  await placed.end(maker, pack)
  const [fetch] = await placed.jobsOf(second)
  await placed.end(second, fetch, { state: 'running', progressBytes: 250, totalBytes: 1000 })
  expect(await copyAt(second)).toMatchObject({ state: 'fetching', progressBytes: 250, totalBytes: 1000 })
  const preview = () => site().query<VersionPreview>('version.preview', { versionId, action: 'override' })
  expect((await preview()).lacking).toMatchObject([
    { edgeId: second.edgeId, state: 'fetching', progressBytes: 250, totalBytes: 1000 },
  ])
  await placed.end(second, fetch, { state: 'failed', message: 'the disk is full' })
  expect(await copyAt(second)).toMatchObject({
    state: 'lacks',
    waitsFor: 'failed',
    untrusted: { message: 'the disk is full' },
    retryAt: new Date(site().api.clock.now.getTime() + 60_000).toISOString(),
  })
  await placed.hold(second, versionId)
  expect(await copyAt(second)).toMatchObject({ state: 'holds', repaired: 0, notRepaired: 0 })
  await second.heartbeat({ repairs: [{ versionId, repaired: 3, failed: 1, lastUnixMs: 7 }] })
  expect(await copyAt(second)).toMatchObject({ state: 'holds', repaired: 3, notRepaired: 1 })
  expect(await copyAt(maker)).toMatchObject({ repaired: 0, notRepaired: 0 })
  expect((await preview()).lacking).toEqual([])
  expect((await set(1, { others: { edges: 0 } })).status).toBe(200)
  // What they hold they keep.
  expect((await copies()).edges.map(({ id }) => id).sort()).toEqual([maker.edgeId, second.edgeId].sort())
})
