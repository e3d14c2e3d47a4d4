import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootReports, bootWith } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { TestSite } from '../../test/test-site.ts'
import { startTracing, type Tracing } from './tracing.ts'

interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: { stringValue?: string; intValue?: string | number } }[]
  status: { code?: number; message?: string }
}
interface OtlpExport {
  resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[]
}

/** A collector: takes OTLP/HTTP with JSON and keeps the spans. */
const spans: OtlpSpan[] = []
let collector: Server
let tracing: Tracing
let api: TestApi
let site: TestSite

beforeAll(async () => {
  collector = createServer(async (request, reply) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as OtlpExport
    for (const { scopeSpans } of body.resourceSpans)
      for (const scope of scopeSpans) if (request.url === '/v1/traces') spans.push(...scope.spans)
    reply.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  collector.listen(0, '127.0.0.1')
  await once(collector, 'listening')
  tracing = startTracing({ endpoint: urlOf(collector), serviceName: 'bootfarm-api', version: '1' })
  api = await startTestApi({ change: (options) => ({ ...options, telemetry: tracing }) })
  site = await TestSite.open(api, 'own', 'owner')
})
afterAll(async () => {
  await api.close()
  await tracing.close()
  collector.close()
})

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const attribute = (span: OtlpSpan | undefined, name: string) =>
  span?.attributes.find(({ key }) => key === name)?.value.stringValue

test('a boot is one trace: the boot, and its phases when they were', async () => {
  const boot = bootWith({ id: randomUUID(), mac: site.mac })
  await site.report(boot)
  await site.edge.reports(1, bootReports(1, [boot]))
  await tracing.flush()
  const own = spans.filter(({ traceId }) => traceId === boot.id.replaceAll('-', ''))
  const root = own.find(({ name }) => name === 'boot')
  expect(own.map(({ name }) => name)).toEqual(['boot', ...boot.phases.map(({ name }) => name)])
  expect(attribute(root, 'bootfarm.organization.id')).toBe(site.tenant.organizationId)
  expect(attribute(root, 'bootfarm.boot.outcome')).toBe('ready')
  const { startedAt } = await api.db.boot.findFirstOrThrow({ where: { id: boot.id } })
  for (const phase of boot.phases) {
    const span = own.find(({ name }) => name === phase.name)
    const beginNs = BigInt(startedAt.getTime()) * 1_000_000n + BigInt(phase.startUs) * 1000n
    expect([phase.name, span?.parentSpanId, span?.startTimeUnixNano, span?.endTimeUnixNano]).toEqual([
      phase.name,
      root?.spanId,
      String(beginNs),
      String(beginNs + BigInt(phase.durationUs ?? 0) * 1000n),
    ])
  }
})

test('a boot that failed says in which phase and why, in our words alone', async () => {
  const id = randomUUID()
  const outcome = {
    kind: 'failed',
    phase: 'stage2',
    cause: 'store_read_error',
    text: '<b>forged</b>',
  } as const
  await site.report({ ...bootWith({ id, mac: site.mac }), outcome })
  await tracing.flush()
  const failed = spans.filter(
    ({ traceId, status }) => traceId === id.replaceAll('-', '') && status.code === 2,
  )
  expect(failed.map(({ name, status }) => [name, status.message])).toEqual([
    ['boot', 'store_read_error'],
    ['stage2', 'store_read_error'],
  ])
  expect(JSON.stringify(spans)).not.toContain('forged')
})

test('a request is a span with its route’s template', async () => {
  const path = `/api/v1/devices/${randomUUID()}`
  await fetch(`${api.url}${path}`)
  const found = () => spans.find(({ name }) => name === 'GET /api/v1/devices/:deviceId')
  // The span ends when the connection has taken the answer, at the latest while another one is asked for.
  while (!found()) {
    await fetch(`${api.url}/healthz`)
    await tracing.flush()
  }
  const span = found()
  expect(span?.attributes).toContainEqual({ key: 'http.response.status_code', value: { intValue: 401 } })
  expect(JSON.stringify(spans)).not.toContain(path)
})

test('a collector that is away holds up nobody', async () => {
  const away = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(away, 'listening')
  const endpoint = urlOf(away)
  const lost = startTracing({ endpoint, serviceName: 'bootfarm-api', version: '1' })
  for (let count = 0; count < 10_000; count++)
    lost.requestAnswered({ method: 'GET', route: '/api/v1/devices', status: 200, durationMs: 1 })
  away.close()
  away.closeAllConnections()
  await lost.close()
})
