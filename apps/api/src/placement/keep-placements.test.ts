import { beforeEach, expect, test } from 'vitest'
import type { EdgeClient } from '../../test/edge-client.ts'
import { PlacedSite } from '../../test/placed-site.ts'
import { startTestApi } from '../../test/test-api.ts'
import { useTestSite } from '../../test/test-site.ts'
import { dropOldDifferences } from '../difference/drop-old-differences.ts'
import { Objects } from '../difference/objects.ts'
import { keepPlacements } from './keep-placements.ts'

const site = useTestSite('admin')
let placed: PlacedSite
/** The version that devices boot, at the maker. */
let first: string
let maker: EdgeClient
let second: EdgeClient

beforeEach(async () => {
  ;({ placed, first, maker, second } = await PlacedSite.withTwoEdges(site()))
})

/** The job is done, and so is what was asked for. */
async function pack(edge: EdgeClient) {
  const [job] = await placed.jobsOf(edge)
  expect(job).toMatchObject({ kind: 'pack' })
  await placed.end(edge, job)
  return job
}

async function fetchAll(edge: EdgeClient, ...held: string[]) {
  const [job] = await placed.jobsOf(edge)
  expect(job).toMatchObject({ kind: 'fetch' })
  await placed.end(edge, job)
  await placed.hold(edge, ...held)
  return job
}

const place = (sites: object[], others: object | null = null) => {
  const { organizationId, farmId, vdiskId } = site().tenant
  const rows = [...sites, ...(others ? [{ siteId: null, ...others }] : [])]
  return site().api.db.$transaction(async (db) => {
    await db.placement.deleteMany({ where: { organizationId, vdiskId } })
    const key = { organizationId, farmId, vdiskId, changedAt: site().api.clock.read() }
    const { id: placementId } = await db.placement.create({ data: key })
    for (const row of rows) await db.placementSite.create({ data: { organizationId, placementId, ...row } as never })
  })
}

test('a version gets to the other edge of its site: it is packed once, and fetched from the edge that has it', async () => {
  const [job] = await placed.jobsOf(maker)
  expect(job).toMatchObject({ kind: 'pack', versionId: first, toControlPlane: true })
  expect(job).not.toHaveProperty('baseVersionId')
  expect(await placed.jobsOf(second)).toEqual([])
  expect(await placed.jobsOf(maker)).toHaveLength(1)
  await placed.end(maker, job)
  const [fetch, ...more] = await placed.jobsOf(second)
  expect(more).toEqual([])
  expect(fetch).toMatchObject({
    kind: 'fetch',
    versionId: first,
    differenceId: job?.differenceId,
    differenceSizeBytes: 1000,
    differenceListSha256: 'ab'.repeat(32),
    sources: [maker.edgeId],
    manifest: { root: Buffer.alloc(32, 1).toString('base64'), counter: 1 },
  })
  expect(fetch).not.toHaveProperty('fromControlPlane')
  expect((await site().state(maker)).keptDifferences).toEqual([job?.differenceId])
  await placed.end(second, fetch)
  // Its inventory comes later.
  expect(await placed.jobsOf(second)).toEqual([])
  await placed.hold(second, first)
  expect([await placed.jobsOf(maker), await placed.jobsOf(second)]).toEqual([[], []])
  expect((await site().state(second)).keptDifferences).toEqual([job?.differenceId])
})

test('a new version travels as a difference from its parent, and to an edge without it after that one', async () => {
  await pack(maker)
  await fetchAll(second, first)
  const next = await placed.makeVersion(2, first, { state: 'test' })
  await placed.hold(maker, first, next)
  expect(await pack(maker)).toMatchObject({ versionId: next, baseVersionId: first })
  const third = await placed.enrol()
  // The second has its base. The third gets the base first, of which the difference is known.
  expect((await placed.jobsOf(second))[0]).toMatchObject({ kind: 'fetch', versionId: next, baseVersionId: first })
  expect(await placed.jobsOf(third)).toMatchObject([{ kind: 'fetch', versionId: first }])
  await fetchAll(third, first)
  expect(await placed.jobsOf(third)).toMatchObject([{ kind: 'fetch', versionId: next, baseVersionId: first }])
})

test('a new edge gets the version that devices boot before the others, and one fetch enters a new site', async () => {
  const next = await placed.makeVersion(2, first)
  await placed.hold(maker, first, next)
  await placed.hold(second, first, next)
  const other = await placed.makeSite('Other')
  const [third, fourth] = [await placed.enrol(other), await placed.enrol(other)]
  // Version 2 is the default: it has no time to wait for its parent.
  const packs = [...(await placed.jobsOf(maker)), ...(await placed.jobsOf(second))]
  expect(packs.map(({ kind, versionId, baseVersionId = null }) => [kind, versionId, baseVersionId]).sort()).toEqual(
    [
      ['pack', first, null],
      ['pack', next, null],
    ].sort(),
  )
  for (const edge of [maker, second]) for (const job of await placed.jobsOf(edge)) await placed.end(edge, job)
  const jobs = [...(await placed.jobsOf(third)), ...(await placed.jobsOf(fourth))]
  expect(jobs.map(({ versionId }) => versionId).sort()).toEqual([first, first, next, next].sort())
  for (const versionId of [first, next]) {
    // One gets it from the control plane; the other one from that one, while it comes.
    const [enters, ...more] = jobs.filter((job) => job.versionId === versionId && job.fromControlPlane)
    expect(more).toEqual([])
    expect(enters).not.toHaveProperty('sources')
    const follow = jobs.find((job) => job.versionId === versionId && !job.fromControlPlane)
    expect([[third.edgeId], [fourth.edgeId]]).toContainEqual(follow?.sources)
  }
})

test('when the edge that gets a difference for its site falls silent, another one does, and only one goes on', async () => {
  const other = await placed.makeSite('Other')
  const [third, fourth, fifth] = [await placed.enrol(other), await placed.enrol(other), await placed.enrol(other)]
  await pack(maker)
  const edges = [third, fourth, fifth]
  const entering = async () => {
    await placed.keep()
    const found = []
    for (const edge of edges)
      for (const job of (await site().state(edge)).storeJobs ?? []) if (job.fromControlPlane) found.push({ edge, job })
    return found
  }
  const [silent, ...more] = await entering()
  expect(more).toEqual([])
  site().api.clock.advance(76_000)
  const others = edges.filter((edge) => edge !== silent?.edge)
  await placed.hear(maker, second, ...others)
  const now = (await entering()).filter(({ edge }) => edge !== silent?.edge)
  expect(now).toHaveLength(1)
  const [follower] = others.filter((edge) => edge !== now[0]?.edge)
  expect((await site().state(follower ?? third)).storeJobs).toMatchObject([{ sources: [now[0]?.edge.edgeId] }])
  // It has come further than the one that was silent.
  await placed.end(now[0]?.edge ?? third, now[0]?.job, { state: 'running', progressBytes: 5 })
  await placed.hear(...edges)
  expect((await entering()).map(({ edge }) => edge)).toEqual([now[0]?.edge])
  expect((await site().state(silent?.edge ?? third)).storeJobs).toHaveLength(1)
})

test('a failed job is tried again after growing pauses, and then asks the control plane, too', async () => {
  await pack(maker)
  for (const minutes of [1, 2, 4]) {
    const [job] = await placed.jobsOf(second)
    await placed.end(second, job, { state: 'failed', message: 'piece 3 is wrong at each source' })
    site().api.clock.advance(minutes * 60_000 - 1000)
    await placed.hear(maker, second)
    expect(await placed.jobsOf(second)).toEqual([])
    site().api.clock.advance(1000)
    await placed.hear(maker, second)
    expect(await placed.jobsOf(second)).toMatchObject([
      { kind: 'fetch', fromControlPlane: true, sources: [maker.edgeId] },
    ])
  }
})

test('a failed pack is done by another edge that holds the version', async () => {
  const third = await placed.enrol()
  await placed.hold(third, first)
  await placed.keep()
  const isMaker = (await placed.jobsOf(maker)).length > 0
  const [one, other] = isMaker ? [maker, third] : [third, maker]
  const [job] = await placed.jobsOf(one)
  await placed.end(one, job, { state: 'failed', message: 'the disk is full' })
  expect(await placed.jobsOf(other)).toMatchObject([{ kind: 'pack', differenceId: job?.differenceId }])
  expect(await placed.jobsOf(one)).toEqual([])
})

test('what a person has cancelled is left alone for a day, or until the placement is saved', async () => {
  await pack(maker)
  const [job] = await placed.jobsOf(second)
  await site().mutate('storeJob.cancel', { jobId: job?.id })
  expect(await placed.jobsOf(second)).toEqual([])
  site().api.clock.advance(1000)
  await place([], { edges: null })
  expect(await placed.jobsOf(second)).toMatchObject([{ kind: 'fetch' }])
})

test('the jobs and the differences of a deleted version end', async () => {
  const next = await placed.makeVersion(2, first, { state: 'test' })
  await placed.hold(maker, first, next)
  await placed.hold(second, first)
  const job = await pack(maker)
  expect(await placed.jobsOf(second)).toMatchObject([{ kind: 'fetch', versionId: next }])
  await site().api.db.storeJob.updateMany({ where: { versionId: next, kind: 'fetch' }, data: { state: 'running' } })
  const { organizationId, vdiskId } = site().tenant
  const deletedAt = site().api.clock.read()
  const deletion = await site().api.db.deletion.create({
    data: {
      organizationId,
      kind: 'version',
      objectId: next,
      objectName: 'Linux version 2',
      counts: {},
      deletedAt,
      deletedByName: 'A',
    },
  })
  await site().api.db.vdiskVersion.updateMany({ where: { id: next }, data: { deletionId: deletion.id } })
  expect([await placed.jobsOf(maker), await placed.jobsOf(second)]).toEqual([[], []])
  const { serverDb: db, clock, objects } = site().api
  await objects.store.put({ organizationId, differenceId: job?.differenceId ?? '', name: '0' }, Buffer.from('x'))
  await dropOldDifferences({ db, clock: clock.read, objects })
  expect(await site().api.db.difference.count({ where: { vdiskId } })).toBe(0)
  expect(await objects.store.differenceIds(organizationId)).toEqual([])
  expect(await site().state(maker)).not.toHaveProperty('keptDifferences')
})

test('an edge that lost its store fetches again, and serves nobody meanwhile', async () => {
  await pack(maker)
  await fetchAll(second, first)
  site().api.clock.advance(61_000)
  await placed.hear(maker, second)
  await placed.hold(second)
  expect(await placed.jobsOf(second)).toMatchObject([{ kind: 'fetch', versionId: first, sources: [maker.edgeId] }])
  expect(await site().state(second)).not.toHaveProperty('keptDifferences')
})

test('differences are dropped a week after an edge last lacked their version', async () => {
  await pack(maker)
  await fetchAll(second, first)
  const { serverDb: db, clock, objects } = site().api
  const drop = async () => {
    await dropOldDifferences({ db, clock: clock.read, objects })
    return site().api.db.difference.count({ where: { vdiskId: site().tenant.vdiskId } })
  }
  clock.advance(7 * 86_400_000 - 1000)
  expect(await drop()).toBe(1)
  clock.advance(2000)
  expect(await drop()).toBe(0)
})

test('a placement says how many edges of which sites, how fast and when', async () => {
  const other = await placed.makeSite('Berlin', 'Europe/Berlin')
  const [third, fourth] = [await placed.enrol(other), await placed.enrol(other)]
  await place([{ siteId: other, edges: 1, rateBytesPerSecond: 5000, windowFrom: '22:00', windowTo: '06:00' }])
  site().api.clock.now = new Date('2027-01-10T20:59:00Z')
  await placed.hear(maker, second, third, fourth)
  await pack(maker)
  const jobs = async () => [await placed.jobsOf(second), await placed.jobsOf(third), await placed.jobsOf(fourth)]
  expect(await jobs()).toEqual([[], [], []])
  // 22:00 in Berlin.
  site().api.clock.advance(60_000)
  await placed.hear(maker, second, third, fourth)
  const found = (await jobs()).flat()
  expect(found).toMatchObject([{ kind: 'fetch', fromControlPlane: true, rateBytesPerSecond: 5000 }])
  expect(await placed.jobsOf(second)).toEqual([])
  // What runs gets the new limit; what nobody needs any more ends.
  await place([{ siteId: other, edges: 1, rateBytesPerSecond: 700 }])
  expect((await jobs()).flat()).toMatchObject([{ id: found[0]?.id, rateBytesPerSecond: 700 }])
  await place([], null)
  expect((await jobs()).flat()).toEqual([])
})

test('two API processes at once order everything once', async () => {
  const beside = await startTestApi({ beside: site().api })
  const [third, fourth] = [await placed.enrol(), await placed.enrol(await placed.makeSite('Other'))]
  const { organizationId } = site().tenant
  const both = () => Promise.all([placed.keep(), placed.keep(beside), placed.keep(), placed.keep(beside)])
  const count = (kind: 'pack' | 'fetch') => site().api.db.storeJob.count({ where: { kind, organizationId } })
  await both()
  expect(await count('pack')).toBe(1)
  await pack(maker)
  await both()
  expect(await count('fetch')).toBe(3)
  for (const edge of [second, third, fourth]) expect(await placed.jobsOf(edge)).toHaveLength(1)
  await beside.close()
})

test('without an object store a version stays in its site', async () => {
  const fourth = await placed.enrol(await placed.makeSite('Other'))
  const { serverDb: db, clock } = site().api
  const objects = new Objects({ store: null, organizationBytesMax: 1 })
  const keep = () => keepPlacements({ db, clock: clock.read, objects })
  await keep()
  const [job] = (await site().state(maker)).storeJobs ?? []
  expect(job).toMatchObject({ kind: 'pack' })
  expect(job).not.toHaveProperty('toControlPlane')
  await placed.end(maker, job)
  await keep()
  expect((await site().state(second)).storeJobs).toMatchObject([{ kind: 'fetch', sources: [maker.edgeId] }])
  expect(await site().state(fourth)).not.toHaveProperty('storeJobs')
})

test('an edge without a store, of an older release or silent is ordered nothing', async () => {
  await pack(maker)
  await second.heartbeat({ storeJobKinds: ['verify'] })
  expect(await placed.jobsOf(second)).toEqual([])
  await placed.hear(second)
  site().api.clock.advance(76_000)
  await placed.hear(maker)
  expect(await placed.jobsOf(second)).toEqual([])
  await placed.hear(second)
  expect(await placed.jobsOf(second)).toHaveLength(1)
})
