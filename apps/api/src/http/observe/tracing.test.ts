import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootReports, bootWith } from '../../../test/edge-client.ts'
import { callRest } from '../../../test/rest-client.ts'
import { startTestApi, type TestApi, testWebhookTargets } from '../../../test/test-api.ts'
import { TestSite } from '../../../test/test-site.ts'
import {
  isWithin,
  type OtlpSpan,
  spanAttributes,
  startTraceCollector,
  type TraceCollector,
} from '../../../test/trace-collector.ts'
import { deliverDue } from '../../../test/webhook/deliver-due.ts'
import { startReceiver } from '../../../test/webhook/receiver.ts'
import { runInTrace } from '../../rules/tracer.ts'
import { startTracing, type Tracing } from './tracing.ts'

let collector: TraceCollector
let spans: OtlpSpan[]
let tracing: Tracing
let api: TestApi
let site: TestSite

beforeAll(async () => {
  collector = await startTraceCollector()
  spans = collector.spans
  tracing = startTracing({ endpoint: collector.url, serviceName: 'bootfarm-api', version: '1' })
  api = await startTestApi({
    onQuery: (ended) => tracing.queryEnded(ended),
    change: (options) => ({ ...options, telemetry: tracing, tracer: tracing }),
  })
  site = await TestSite.open(api, 'own', 'owner')
})
afterAll(async () => {
  await api.close()
  await tracing.close()
  await collector.close()
})

test('a boot is one trace: the boot, and its phases when they were', async () => {
  const boot = bootWith({ id: randomUUID(), mac: site.mac })
  await site.report(boot)
  await site.edge.reports(1, bootReports(1, [boot]))
  await tracing.flush()
  const own = spans.filter(({ traceId }) => traceId === boot.id.replaceAll('-', ''))
  const root = own.find(({ name }) => name === 'boot')
  expect(own.map(({ name }) => name)).toEqual(['boot', ...boot.phases.map(({ name }) => name)])
  expect(spanAttributes(root as OtlpSpan)['bootfarm.organization.id']).toBe(site.tenant.organizationId)
  expect(spanAttributes(root as OtlpSpan)['bootfarm.boot.outcome']).toBe('ready')
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

test('a failed boot has its phase and cause, in our words only', async () => {
  const id = randomUUID()
  const outcome = {
    kind: 'failed',
    phase: 'stage2',
    cause: 'store_read_error',
    text: '<b>forged</b>',
  } as const
  await site.report({ ...bootWith({ id, mac: site.mac }), outcome })
  await tracing.flush()
  const failed = spans.filter(({ traceId, status }) => traceId === id.replaceAll('-', '') && status.code === 2)
  expect(failed.map(({ name, status }) => [name, status.message])).toEqual([
    ['boot', 'store_read_error'],
    ['stage2', 'store_read_error'],
  ])
  expect(JSON.stringify(spans)).not.toContain('forged')
})

/** A span ends when the connection has taken the answer, at the latest while another request is answered. */
async function untilSent(isThere: (span: OtlpSpan) => boolean): Promise<OtlpSpan> {
  for (;;) {
    await fetch(`${api.url}/healthz`)
    await tracing.flush()
    const found = spans.find(isThere)
    if (found) return found
  }
}

const newId = (bytes: number) => randomBytes(bytes).toString('hex')

test('a request is a span with its route’s template', async () => {
  const path = `/api/v1/devices/${randomUUID()}`
  await fetch(`${api.url}${path}`)
  const span = await untilSent(({ name }) => name === 'GET /api/v1/devices/:deviceId')
  expect(spanAttributes(span)).toMatchObject({ 'http.response.status_code': 401 })
  expect(JSON.stringify(spans)).not.toContain(path)
})

test('it belongs to the trace of its caller, and below it stand the procedure and its statements, without values', async () => {
  const [traceId, callersId] = [newId(16), newId(8)]
  const deviceId = site.deviceId
  const answer = await fetch(`${api.url}/api/v1/devices/${deviceId}`, {
    headers: { cookie: site.cookie, traceparent: `00-${traceId}-${callersId}-01` },
  })
  expect(answer.status).toBe(200)
  const request = await untilSent((span) => span.traceId === traceId && span.parentSpanId === callersId)
  const own = spans.filter((span) => span.traceId === traceId)
  const procedure = own.find(({ name }) => name === 'device.get')
  expect([procedure?.parentSpanId, spanAttributes(procedure as OtlpSpan)]).toEqual([
    request.spanId,
    { 'bootfarm.procedure.outcome': 'ok' },
  ])
  const statements = own.filter((span) => span !== request && span !== procedure)
  const parentOf = (name: string) => statements.find((span) => span.name === name)?.parentSpanId
  for (const name of ['begin', 'select device', 'commit']) expect(parentOf(name)).toBe(procedure?.spanId)
  // The caller is looked up before the procedure is called.
  expect(parentOf('select session')).toBe(request.spanId)
  expect(spanAttributes(request)['bootfarm.db.query_count']).toBe(statements.length)
  for (const statement of statements) {
    const parent = statement.parentSpanId === request.spanId ? request : (procedure as OtlpSpan)
    expect(isWithin(statement, parent)).toBe(true)
  }
  for (const value of [deviceId, site.tenant.organizationId, site.mac])
    expect(JSON.stringify(statements)).not.toContain(value)
})

test('a trace that its caller does not want collected is not; one that is not well-formed begins here', async () => {
  const [unwanted, malformed] = [newId(16), newId(16)]
  const ask = (traceparent: string) => fetch(`${api.url}/api/openapi.json`, { headers: { traceparent } })
  await ask(`00-${unwanted}-${newId(8)}-00`)
  await ask(`00-${malformed}-${'0'.repeat(16)}-01`)
  const begun = await untilSent(({ name }) => name === 'GET /api/openapi.json')
  expect(begun.parentSpanId ?? '').toBe('')
  expect(spans.filter(({ traceId }) => [unwanted, malformed].includes(traceId))).toEqual([])
})

test('statements that go out together have the time that each took, one after the other', async () => {
  const [traceId, parentId] = [newId(16), newId(8)]
  const { pool } = openDb(api.serverDatabaseUrl, (ended) => tracing.queryEnded(ended))
  const client = await pool.connect()
  const root = tracing.start('internal', { traceId, spanId: parentId, isSampled: true })
  await runInTrace(root, () =>
    Promise.all([
      client.query('select pg_sleep(0.2) from generate_series(1, 1)'),
      client.query('select 1 from pg_class limit 1'),
    ]),
  )
  client.release()
  await pool.end()
  root.end({ name: 'both', error: null })
  await tracing.flush()
  const own = spans.filter((span) => span.traceId === traceId)
  const of = (name: string) => own.find((span) => span.name === name) as OtlpSpan
  const [slow, quick] = [of('select generate_series'), of('select pg_class')]
  const duration = (span: OtlpSpan) => Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano))
  expect(duration(slow)).toBeGreaterThanOrEqual(200e6)
  // It was sent with the slow one, waited for it, and records that.
  expect(BigInt(quick.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(slow.endTimeUnixNano))
  expect(Number(spanAttributes(quick)['bootfarm.db.wait_ms'])).toBeGreaterThanOrEqual(200)
  expect(duration(quick)).toBeLessThan(duration(slow))
})

test('a caller that waits for a connection sees its own statements', async () => {
  const askers = Array.from({ length: 40 }, () => {
    const root = tracing.start('internal', null)
    const work = async () => {
      // Not in a transaction: the pool gives each a connection when one is free.
      await api.serverDb.$queryRaw`select pg_sleep(0.01)::text`
      await api.serverDb.$queryRaw`select 1 as one`
      root.end({ name: 'asker', error: null })
    }
    return { root, done: runInTrace(root, work) }
  })
  await Promise.all(askers.map(({ done }) => done))
  await tracing.flush()
  for (const { root } of askers) {
    const own = spans.filter(({ traceId }) => traceId === root.traceId)
    expect(own.map(({ name, parentSpanId }) => [name, parentSpanId || null])).toEqual([
      ['select', root.spanId],
      ['select', root.spanId],
      ['asker', null],
    ])
  }
})

test('a request with very many statements records the first ones, and their number', async () => {
  const root = tracing.start('internal', null)
  await runInTrace(root, async () => {
    for (let count = 0; count < 600; count += 1) await api.serverDb.$queryRaw`select 1 as one`
  })
  root.end({ name: 'busy', error: null })
  await tracing.flush()
  const own = spans.filter(({ traceId }) => traceId === root.traceId)
  expect(own).toHaveLength(501)
  expect(spanAttributes(own.at(-1) as OtlpSpan)['bootfarm.db.query_count']).toBe(600)
})

test('a message to a webhook belongs to the trace of the request that it came of, and carries it on', async () => {
  const receiver = await startReceiver()
  const { body: webhook } = await callRest(api, '/webhooks', {
    method: 'POST',
    headers: { cookie: site.cookie },
    body: { name: 'Chat', url: receiver.url, events: ['boot.failed'] },
  })
  expect(webhook).toMatchObject({ enabled: true })
  const outcome = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: '' } as const
  await site.report({ ...bootWith({ id: randomUUID(), mac: site.mac }), outcome })
  // Delivers like another process, outside of any request.
  await deliverDue({
    db: api.serverDb,
    clock: api.clock.read,
    webhookTargets: testWebhookTargets,
    telemetry: tracing,
    tracer: tracing,
  })
  await receiver.close()
  const { traceparent } = receiver.received[0]?.headers ?? {}
  const [, traceId, spanId] = String(traceparent).split('-')
  const request = await untilSent((span) => span.name === 'POST /edge/v1/reports' && span.traceId === traceId)
  const sent = spans.find((span) => span.spanId === spanId)
  expect([sent?.name, sent?.traceId, sent?.parentSpanId]).toEqual(['POST webhook', traceId, request.spanId])
  expect(spanAttributes(sent as OtlpSpan)).toMatchObject({ 'http.response.status_code': 200 })
})

test('a collector that is away holds up nobody', async () => {
  const away = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(away, 'listening')
  const endpoint = `http://127.0.0.1:${(away.address() as AddressInfo).port}`
  const lost = startTracing({ endpoint, serviceName: 'bootfarm-api', version: '1' })
  for (let count = 0; count < 10_000; count++)
    lost.start('server', null).end({ name: 'GET /api/v1/devices', error: null })
  away.close()
  away.closeAllConnections()
  await lost.close()
})
