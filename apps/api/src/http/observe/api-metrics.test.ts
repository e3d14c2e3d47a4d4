import { randomUUID } from 'node:crypto'
import { openDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { query } from '../../../test/test-client.ts'
import { TestSite } from '../../../test/test-site.ts'
import { makeJoinToken } from '../../../test/test-tenant.ts'
import { readFleetFigures } from '../../platform/read-fleet-figures.ts'
import { ApiMetrics } from './api-metrics.ts'
import { addFleetGauges } from './fleet-gauges.ts'
import { type MetricsServer, startMetricsServer } from './metrics-server.ts'

const token = 'a token of scrapers'
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/
const metrics = new ApiMetrics({ version: '7.8.9', pool: () => ({ total: 5, idle: 3, waiting: 2 }) })
let api: TestApi
let site: TestSite
let server: MetricsServer
let monotonicMs = 0

beforeAll(async () => {
  api = await startTestApi({ change: ({ governor: _unhurried, ...options }) => ({ ...options, telemetry: metrics }) })
  site = await TestSite.open(api, 'blue-whale', 'owner')
  addFleetGauges(metrics.registry, {
    read: () => readFleetFigures({ db: api.serverDb, clock: api.clock.read }),
    now: () => monotonicMs,
  })
  server = await startMetricsServer(metrics.registry, { host: '127.0.0.1', port: 0, token })
})
afterAll(async () => {
  await server.close()
  await api.close()
})

const ask = (path: string, headers: Record<string, string> = { authorization: `Bearer ${token}` }, method = 'GET') =>
  fetch(`http://127.0.0.1:${server.port}${path}`, { headers, method })

/** Values of a scrape by series. */
async function scrape(): Promise<Map<string, number>> {
  const text = await (await ask('/metrics')).text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}

const own = (series: Iterable<string>) => [...series].filter((name) => name.startsWith('bootfarm_'))

test('it is shown to who has the token, and nothing but it', async () => {
  const shown = await ask('/metrics')
  expect([shown.status, shown.headers.get('content-type')]).toEqual([
    200,
    expect.stringContaining('text/plain; version=0.0.4'),
  ])
  expect((await ask('/metrics', {})).status).toBe(401)
  expect((await ask('/metrics', { authorization: 'Bearer a token of others' })).status).toBe(401)
  expect((await ask('/healthz')).status).toBe(404)
  expect((await ask('/metrics', { authorization: `Bearer ${token}` }, 'POST')).status).toBe(405)
  expect((await fetch(`${api.url}/metrics`)).status).toBe(404)
})

test('a boot is counted once, however often its reports come', async () => {
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, site.tenant))
  const before = await scrape()
  const boots = [
    bootWith({ id: randomUUID(), mac: site.mac }),
    bootWith({ id: randomUUID(), mac: site.mac, generated: true }),
    bootWith({ id: randomUUID(), mac: site.mac, outcome: { kind: 'silent', phase: 'firmware' } }),
  ]
  const reports = bootReports(1, boots)
  expect((await edge.reports(1, reports)).status).toBe(200)
  expect((await edge.reports(1, reports)).status).toBe(200)
  expect((await edge.reports(9, bootReports(9, boots))).status).toBe(409)
  const after = await scrape()
  const grown = (series: string) => (after.get(series) ?? 0) - (before.get(series) ?? 0)
  const outcome = boots[0]?.outcome?.kind
  expect(outcome).toBe('ready')
  expect(grown('bootfarm_boots_total{outcome="ready"}')).toBe(1)
  expect(grown('bootfarm_boots_total{outcome="no_response"}')).toBe(1)
  expect(grown('bootfarm_boots_total{outcome="silent"}')).toBe(0)
  expect(grown('bootfarm_boot_duration_seconds_count')).toBe(1)
  expect(grown('bootfarm_report_batches_total{result="applied"}')).toBe(1)
  expect(grown('bootfarm_report_batches_total{result="repeated"}')).toBe(1)
  expect(grown('bootfarm_report_batches_total{result="refused"}')).toBe(1)
  expect(grown('bootfarm_reports_applied_total{type="boot"}')).toBe(3)
})

test('each turn at the event loop is counted with its wait, and edges take none', async () => {
  const counts = async () => {
    const series = await scrape()
    return ['request', 'call', 'upload'].map(
      (kind) => series.get(`bootfarm_turn_wait_duration_seconds_count{kind="${kind}"}`) ?? 0,
    )
  }
  const before = await counts()
  await query(api, site.cookie, 'device.list', {})
  await site.edge.heartbeat()
  expect((await counts()).map((count, index) => count - (before[index] ?? 0))).toEqual([1, 1, 0])
})

test('a state is acknowledged once, by the request for what follows it', async () => {
  const counted = async () => (await scrape()).get('bootfarm_state_acknowledge_duration_seconds_count') ?? 0
  const before = await counted()
  const { body } = await site.edge.state('0.0', 0)
  const { incarnation, counter } = JSON.parse(String(body?.payload)) as Record<string, number>
  monotonicMs += 60_000
  expect([await counted(), (await scrape()).get('bootfarm_states_waiting')]).toEqual([before, 1])
  for (let polls = 0; polls < 3; polls++) await site.edge.state(`${incarnation}.${counter}`, 0)
  monotonicMs += 60_000
  expect([await counted(), (await scrape()).get('bootfarm_states_waiting')]).toEqual([before + 1, 0])
})

test('the fleet is counted over all organizations, and the database is asked once in ten seconds', async () => {
  const other = await site.other('owner')
  await site.edge.heartbeat({ clockUnixMs: api.clock.now.getTime(), reportBacklog: 3, devicesBooting: 5 })
  await other.edge.heartbeat({
    clockUnixMs: api.clock.now.getTime() - 60_000,
    reportBacklog: 4,
    devicesBooting: 2,
  })
  monotonicMs += 60_000
  const series = await scrape()
  const edges = await api.db.edge.count()
  expect(series.get('bootfarm_edges{state="online"}')).toBe(2)
  expect(series.get('bootfarm_edges{state="offline"}')).toBe(edges - 2)
  expect(series.get('bootfarm_edges_skewed')).toBe(1)
  expect(series.get('bootfarm_report_backlog')).toBe(7)
  expect(series.get('bootfarm_devices_booting')).toBe(7)
  api.clock.advance(120_000)
  monotonicMs += 9_999
  expect((await scrape()).get('bootfarm_edges{state="online"}')).toBe(2)
  monotonicMs += 1
  expect((await scrape()).get('bootfarm_edges{state="online"}')).toBe(0)
  // The state of edges that are not heard is unknown.
  expect((await scrape()).get('bootfarm_devices_booting')).toBe(0)
})

test('who reads the numbers of all reads nobody’s rows', async () => {
  expect(await api.serverDb.edge.count()).toBe(0)
  await expect(readFleetFigures({ db: api.serverDb, clock: api.clock.read })).resolves.toMatchObject({
    jobs: expect.any(Array),
  })
})

test('no request creates a series: labels are of sets that the build knows', async () => {
  const strange = async (round: number) => {
    const id = randomUUID()
    await fetch(`${api.url}/api/v1/devices/${id}`, { headers: { cookie: site.cookie } })
    await fetch(`${api.url}/no-such-page-${id}`)
    await fetch(`${api.url}/no-such-page-${id}`, { method: 'PROPFIND' })
    await fetch(`${api.url}/api/trpc/no.such.procedure${round}`, { headers: { cookie: site.cookie } })
    await query(api, site.cookie, 'device.list', { search: id }).catch(() => undefined)
    await site.report(bootWith({ id, mac: site.mac, menuEntry: `entry ${id}` }))
    metrics.queryEnded(`select_${id} "${id}"`, 1, false)
  }
  // Twice: a request counts when its connection has taken the answer.
  for (let round = 0; round < 2; round++) await strange(round)
  const before = own((await scrape()).keys())
  for (let round = 2; round <= 4; round++) await strange(round)
  const after = own((await scrape()).keys())
  expect(after.toSorted()).toEqual(before.toSorted())
  expect(after.length).toBeGreaterThan(100)
  for (const name of after) {
    expect(name).not.toMatch(uuid)
    expect(name).not.toMatch(/blue-whale|no.such|@|\bentry\b/)
  }
})

test('statements and connections of the database are counted', async () => {
  const ended: { text: string; isFailed: boolean }[] = []
  const { db, pool } = openDb(api.serverDatabaseUrl, ({ text, isFailed }) => ended.push({ text, isFailed }))
  await db.$queryRaw`select ${'a secret'}::text`
  expect(pool.totalCount).toBe(1)
  await expect(db.$queryRaw`select nothing`).rejects.toThrow()
  expect(ended).toMatchObject([{ isFailed: false }, { isFailed: true }])
  expect(JSON.stringify(ended)).not.toContain('a secret')
  await db.$disconnect()
  expect(pool.totalCount).toBe(0)
  expect((await scrape()).get('bootfarm_db_pool_connections{state="waiting"}')).toBe(2)
  expect((await scrape()).get('bootfarm_build_info{version="7.8.9"}')).toBe(1)
})
