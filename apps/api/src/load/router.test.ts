import type { EdgeLoad, Heartbeat } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { useTestSite } from '../../test/test-site.ts'
import { dropOldLoads } from './drop-old-loads.ts'
import type { EdgeCapacity, LoadView } from './schema.ts'

const site = useTestSite('viewer')
const mib = 1024 * 1024
const start = new Date('2026-11-20T12:00:10Z')

beforeEach(() => {
  site().api.clock.now = start
})

const none = { streams: 0, tftpBytes: 0, httpBytes: 0, streamBytes: 0, reads: 0, coldReads: 0, coldReadUs: 0 }
const withLoad = (load: Partial<EdgeLoad>): Partial<Heartbeat> => ({ load: { ...none, ...load } })
const machine = {
  loadAverage: 1,
  processors: 2,
  memoryTotalBytes: 8_000,
  memoryAvailableBytes: 6_000,
  fileCacheBytes: 4_000,
  storeTotalBytes: 1_000,
  storeFreeBytes: 900,
}

async function hear(changes: Partial<Heartbeat>, afterMs = 30_000, edge = site().edge) {
  site().api.clock.advance(afterMs)
  expect((await edge.heartbeat(changes)).status).toBe(200)
}

const loadOf = (input: Record<string, unknown> = {}, edgeId = site().edge.edgeId) =>
  site().query<LoadView>('load.ofEdge', { edgeId, rangeMinutes: 60, ...input })
const capacity = () => site().query<EdgeCapacity>('load.capacity', { edgeId: site().edge.edgeId })

test('rates are what the counters grew in the time between heartbeats, by the minute', async () => {
  await hear(withLoad({ streamBytes: 500 * mib, reads: 900 }), 0)
  const cold = { coldReads: 30, coldReadUs: 90_000 }
  const first = { streams: 6, streamBytes: 560 * mib, httpBytes: 30 * mib, reads: 1_200, ...cold }
  const processor = { processorMs: 60_000, processorBusyMs: 15_000 }
  await hear({ ...withLoad({ ...first, processorMs: 0, processorBusyMs: 0 }), devicesBooting: 4, machine }, 30_000)
  // The same minute: 12:01:10 is the next one.
  await hear({ ...withLoad({ ...first, streams: 8, ...processor, reads: 1_500 }), machine }, 15_000)
  const { points, stepMinutes } = await loadOf()
  expect(stepMinutes).toBe(1)
  expect(points).toEqual([
    {
      at: '2026-11-20T12:00:00.000Z',
      edges: 1,
      streamBytesPerSecond: expect.closeTo((60 * mib) / 45, 3),
      fileBytesPerSecond: expect.closeTo((30 * mib) / 45, 3),
      sentPeakBytesPerSecond: 3 * mib,
      streams: expect.closeTo((6 * 30 + 8 * 15) / 45, 6),
      booting: expect.closeTo((4 * 30) / 45, 6),
      readsPerSecond: expect.closeTo(600 / 45, 6),
      cacheHitShare: 0.95,
      coldReadMeanUs: 3_000,
      processorShare: 0.25,
      processorPeakShare: 0.25,
      memoryTotalBytes: 8_000,
      memoryAvailableBytes: 6_000,
      fileCacheBytes: 4_000,
      storeTotalBytes: 1_000,
      storeFreeBytes: 900,
      linkMbps: null,
    },
  ])
})

test('an edge that starts again, or whose counter begins at 0 again, gives no negative rates and no jump', async () => {
  await hear(withLoad({ streamBytes: 500 * mib }), 0)
  await hear(withLoad({ streamBytes: 530 * mib }))
  // Its next start: more than before by chance.
  site().edge.bootEpoch += 1
  await hear(withLoad({ streamBytes: 9_000 * mib }))
  await hear(withLoad({ streamBytes: 9_030 * mib }))
  // One that reached its end.
  await hear(withLoad({ streamBytes: 10 * mib }))
  await hear(withLoad({ streamBytes: 40 * mib }))
  const { points } = await loadOf()
  const rates = points.map(({ streamBytesPerSecond }) => streamBytesPerSecond)
  expect(rates).toEqual([mib, mib, mib])
})

test('a heartbeat that comes again counts once, and one after a long silence leaves a gap', async () => {
  await hear(withLoad({ reads: 100 }), 0)
  await hear(withLoad({ reads: 400 }))
  site().edge.counter -= 1
  await hear(withLoad({ reads: 400 }), 0)
  await hear(withLoad({ reads: 100_000 }), 301_000)
  await hear(withLoad({ reads: 100_300 }))
  expect((await loadOf()).points.map(({ readsPerSecond }) => readsPerSecond)).toEqual([10, 10])
})

test('polls that carry heartbeats are counted, too', async () => {
  await hear(withLoad({ reads: 100 }), 0)
  const { body } = await site().edge.state('0.0', 0)
  const { incarnation, counter } = JSON.parse((body as { payload: string }).payload)
  for (const reads of [400, 700]) {
    site().api.clock.advance(30_000)
    const changes = { ...withLoad({ reads }), state: { incarnation, counter } }
    expect((await site().edge.poll(`${incarnation}.${counter}`, 0, changes)).status).toBe(204)
  }
  expect((await loadOf()).points.map(({ readsPerSecond }) => readsPerSecond)).toEqual([10, 10])
})

test('an edge that says what no machine can do is believed up to a limit', async () => {
  const most = Number.MAX_SAFE_INTEGER
  await hear(withLoad({}), 0)
  const lies = { streams: most, tftpBytes: most, httpBytes: most, streamBytes: most, reads: most, coldReads: most }
  const times = { coldReadUs: most, processorMs: 10, processorBusyMs: most, linkMbps: most }
  await hear({ ...withLoad({ ...lies, ...times }), devicesBooting: most })
  await hear(withLoad({ processorMs: 10, processorBusyMs: 10 }))
  await hear(withLoad({ processorMs: 5, processorBusyMs: 20 }))
  const { points } = await loadOf()
  expect(points[0]).toMatchObject({
    streamBytesPerSecond: 125e9,
    fileBytesPerSecond: 250e9,
    readsPerSecond: 1e8,
    cacheHitShare: 0,
    streams: 1e6,
    processorShare: null,
  })
  expect(points.every(({ processorShare }) => processorShare === null || processorShare <= 1)).toBe(true)
  // Its own page and the site's can still be read.
  expect((await capacity()).devices).toBeLessThanOrEqual(3e6)
  expect((await site().tryQuery('load.ofSite', { siteId: site().tenant.siteId })).status).toBe(200)
})

test('an older edge has the figures of its machine alone, and an edge of a malformed load is refused', async () => {
  await hear({ machine })
  await hear({ machine })
  const { points } = await loadOf()
  const unknown = { streamBytesPerSecond: null, streams: null, processorShare: null }
  expect(points[0]).toMatchObject({ ...unknown, storeFreeBytes: 900 })
  expect(await capacity()).toMatchObject({ devices: null, unknownBecause: 'not_reported' })
  for (const reads of [-1, 1.5, Number.MAX_SAFE_INTEGER + 1])
    expect((await site().edge.heartbeat(withLoad({ reads }))).status).toBe(400)
})

test('the load of a site is that of its edges together, without peaks', async () => {
  const second = await site().enrolEdge()
  const foreign = (await site().other('viewer')).edge
  for (const edge of [site().edge, second, foreign]) await hear(withLoad({}), 0, edge)
  await hear(withLoad({ streamBytes: 30 * mib, streams: 4, processorMs: 1000, processorBusyMs: 100 }), 30_000)
  await hear(withLoad({ streamBytes: 60 * mib, streams: 2, processorMs: 1000, processorBusyMs: 300 }), 0, second)
  await hear(withLoad({ streamBytes: 90 * mib }), 0, foreign)
  const ofSite = () => site().query<LoadView>('load.ofSite', { siteId: site().tenant.siteId, rangeMinutes: 60 })
  expect((await ofSite()).points).toMatchObject([
    { edges: 2, streamBytesPerSecond: 3 * mib, streams: 6, processorShare: null, sentPeakBytesPerSecond: null },
  ])
})

test('ranges of days are read from quarters of an hour', async () => {
  await hear(withLoad({}), 0)
  for (let round = 1; round <= 40; round += 1) await hear(withLoad({ reads: round * 300 }))
  const days = await loadOf({ rangeMinutes: 7 * 1440 })
  expect(days.stepMinutes).toBe(30)
  expect(days.points.map(({ at, readsPerSecond }) => [at, readsPerSecond])).toEqual([['2026-11-20T12:00:00.000Z', 10]])
  const { organizationId } = site().tenant
  expect(await site().api.db.edgeLoad.count({ where: { organizationId, stepMinutes: 15 } })).toBe(2)
})

test('minutes are kept for two days, and quarters of an hour for ninety', async () => {
  await hear(withLoad({}), 0)
  await hear(withLoad({ reads: 300 }))
  const { api, tenant, edge } = site()
  const drop = async () => {
    await dropOldLoads({ db: api.serverDb, clock: api.clock.read })
    const rows = await api.db.edgeLoad.findMany({
      where: { organizationId: tenant.organizationId, edgeId: edge.edgeId },
      select: { stepMinutes: true },
    })
    return rows.map(({ stepMinutes }) => stepMinutes).sort((a, b) => a - b)
  }
  api.clock.advance(47 * 3_600_000)
  expect(await drop()).toEqual([1, 15])
  api.clock.advance(2 * 3_600_000)
  expect(await drop()).toEqual([15])
  api.clock.advance(87 * 24 * 3_600_000)
  expect(await drop()).toEqual([15])
  api.clock.advance(24 * 3_600_000)
  expect(await drop()).toEqual([])
})

test('a range that is absurd is refused, and says why', async () => {
  const refusal = async (input: Record<string, unknown>) =>
    (await site().tryQuery('load.ofEdge', { edgeId: site().edge.edgeId, ...input })).text
  expect(await refusal({ rangeMinutes: 4 })).toContain('Choose at least 5 minutes.')
  expect(await refusal({ rangeMinutes: 129_601 })).toContain('Loads are kept for 90 days')
  expect(await refusal({ rangeMinutes: 60, until: '2026-11-20T13:00:00Z' })).toContain('ends in the future')
  expect(await refusal({ rangeMinutes: 60, until: '2026-08-01T00:00:00Z' })).toContain('Loads are kept for 90 days')
})

test('how many more devices an edge carries is estimated from what it measured with many', async () => {
  await hear(withLoad({ processorMs: 0, processorBusyMs: 0 }), 0)
  expect(await capacity()).toMatchObject({ devices: null, unknownBecause: 'not_reported' })
  const busy = { streams: 20, processorMs: 60_000, processorBusyMs: 12_000, streamBytes: 300 * mib, linkMbps: 1_000 }
  await hear(withLoad(busy))
  expect(await capacity()).toMatchObject({
    devices: 60,
    isAtLeast: false,
    limitedBy: 'processor',
    basis: { devices: 20, processor: { devices: 20, share: expect.closeTo(0.2, 5) }, link: { linkMbps: 1_000 } },
  })
})
