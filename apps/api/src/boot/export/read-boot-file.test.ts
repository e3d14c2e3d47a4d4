import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith, guestWith } from '../../../test/edge-client.ts'
import { testOrigin } from '../../../test/test-constants.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { signInAs } from '../../../test/test-tenant.ts'
import { spanAttributes, startTraceCollector } from '../../../test/trace-collector.ts'
import type { ExportedBoot } from './exported-boot.ts'

const site = useTestSite('viewer')

/** What a spreadsheet would execute, and what turns text around. */
const hostileStep = '=cmd|"/c calc"!A1'
const hostileName = 'pc\u202e\u0007\n-1'

async function report(changes: Partial<BootReport> = {}): Promise<string> {
  const { api, tenant } = site()
  const { organizationId } = tenant
  await api.db.device.update({
    where: { organizationId_id: { organizationId, id: site().deviceId } },
    data: { name: hostileName },
  })
  const guest = {
    ...guestWith(),
    kernelStartUs: 1_100_000,
    steps: [
      { group: 'firmware' as const, name: 'firmware', startUs: -3_100_000, durationUs: 2_000_000 },
      { group: 'kernel' as const, name: 'kernel', startUs: 0, durationUs: 900_000 },
      { group: 'unit' as const, name: hostileStep, startUs: 900_000, durationUs: 1_000_000 },
    ],
  }
  const boot = bootWith({ id: randomUUID(), mac: site().mac, guest, ...changes })
  await site().report(boot)
  return boot.id
}

async function get(bootId: string, format: string, cookie = site().cookie) {
  const answer = await fetch(`${site().api.url}/api/v1/boots/${bootId}/export?format=${format}`, {
    headers: { cookie },
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

test('the file for programs has the boot, its critical path over the whole time, and what is usual', async () => {
  const { headers, text } = await get(await report(), 'json')
  expect(headers.get('content-disposition')).toMatch(/^attachment; filename="boot-pc--1-2026-11-20T115900Z\.json"$/)
  const { boot, path, usual } = JSON.parse(text) as ExportedBoot
  expect(boot.outcome).toBe('ready')
  expect(path.segments.map(({ owner, fromUs, toUs }) => [owner.key, fromUs, toUs])).toEqual([
    ['dhcp', 0, 1_000_000],
    ['kernel_hand_over', 1_000_000, 1_100_000],
    ['kernel', 1_100_000, 2_000_000],
    [`unit:${hostileStep}`, 2_000_000, 3_000_000],
  ])
  expect(path.owners.reduce((sum, { share }) => sum + share, 0)).toBe(1000)
  expect(usual.device).toEqual({ bootCount: 0, total: null, phases: [] })
})

test('the file for spreadsheets has no formula and no control character of a device', async () => {
  const { headers, text } = await get(await report(), 'csv')
  expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
  const lines = text.trimEnd().split('\r\n')
  expect(lines[0]).toBe('"track","name","source","startUs","durationUs","percent","evidence"')
  expect(lines.slice(1).map((line) => line.split('","')[0]?.slice(1))).toEqual([
    ...Array(4).fill('critical path'),
    ...Array(2).fill('phase'),
    'firmware step',
    'kernel step',
    'unit step',
  ])
  expect(lines.at(-1)).toMatch(/^"unit step","'=cmd\|""\/c calc""!A1","reported","2000000","1000000"/)
  expect(text.match(/"[=+@\t]/)).toBe(null)
})

test('the file for collectors is accepted by one, with the ids of the boot’s own trace', async () => {
  const bootId = await report({ outcome: { kind: 'failed', phase: 'stage2', cause: 'guest_stopped_reading' } })
  const { text } = await get(bootId, 'otlp')
  const collector = await startTraceCollector()
  await fetch(`${collector.url}/v1/traces`, {
    method: 'POST',
    body: text,
    headers: { 'content-type': 'application/json' },
  })
  await collector.close()
  const spans = collector.spans
  const root = spans.find(({ name }) => name === 'boot')
  expect(root).toMatchObject({
    traceId: bootId.replaceAll('-', ''),
    status: { code: 2, message: 'guest_stopped_reading' },
  })
  for (const { spanId, traceId, parentSpanId, startTimeUnixNano, endTimeUnixNano } of spans) {
    expect(spanId).toMatch(/^(?!0{16})[0-9a-f]{16}$/)
    expect(traceId).toBe(root?.traceId)
    if (spanId !== root?.spanId) expect(parentSpanId).toBe(root?.spanId)
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano))
    expect(BigInt(startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(root?.startTimeUnixNano ?? 0))
  }
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
  const kernel = spans.find(({ name }) => name === 'Kernel: until its first program')
  expect(kernel && spanAttributes(kernel)).toMatchObject({ 'bootfarm.path.source': 'reported' })
  expect(text).not.toContain('\\u0007')
  expect(text).toContain('pc\uFFFD\uFFFD\uFFFD-1')
})

test('the file for Perfetto has a track for each view, and no time before its begin', async () => {
  const { text } = await get(await report(), 'perfetto')
  const { traceEvents } = JSON.parse(text) as {
    traceEvents: { ph: string; name: string; ts: number; dur: number; tid?: number; args: { name?: string } }[]
  }
  const tracks = traceEvents.filter(({ name }) => name === 'thread_name').map(({ args }) => args.name)
  expect(tracks).toEqual(['phases', 'critical path', 'OS boot steps'])
  const spans = traceEvents.filter(({ ph }) => ph === 'X')
  expect(Math.min(...spans.map(({ ts }) => ts))).toBe(0)
  expect(spans.every(({ dur, tid }) => dur >= 0 && tid !== undefined && tid >= 1 && tid <= 3)).toBe(true)
  expect(spans.find(({ name }) => name === 'DHCP exchange')).toMatchObject({ ts: 2_000_000, dur: 1_000_000, tid: 2 })
})

test('who may not see the boot gets no file, and a wrong format is explained', async () => {
  const bootId = await report()
  expect((await get(bootId, 'json', '')).status).toBe(401)
  const other = await site().other('owner')
  expect((await get(bootId, 'json', other.cookie)).status).toBe(404)
  expect((await get(randomUUID(), 'json')).status).toBe(404)
  const { status, text } = await get(bootId, 'xml')
  expect([status, JSON.parse(text)]).toMatchObject([
    400,
    { code: 'invalid', errors: [{ in: 'query', field: 'format' }] },
  ])
})

const callersSpan = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('a boot that a caller ordered links to the caller’s span, and a malformed one is refused', async () => {
  const operator = await signInAs(site().api, site().tenant.organizationId, 'operator')
  const order = (traceparent: string) =>
    fetch(`${site().api.url}/api/v1/devices/${site().deviceId}/boot-again`, {
      method: 'POST',
      headers: { cookie: operator, 'content-type': 'application/json', origin: testOrigin },
      body: JSON.stringify({ traceparent }),
    })
  for (const hostile of [
    callersSpan.toUpperCase(),
    `${callersSpan}\n`,
    `01${callersSpan.slice(2)}`,
    callersSpan.replace('b7ad6b7169203331', '0000000000000000'),
    "00-'; drop table boot--",
  ]) {
    const answer = await order(hostile)
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      {
        code: 'invalid',
        errors: [{ field: 'traceparent', message: expect.stringMatching(/^A traceparent has the form/) }],
      },
    ])
  }
  expect((await order(callersSpan)).status).toBe(200)
  const startedUnixMs = site().api.clock.now.getTime() + 2_000
  site().api.clock.advance(60_000)
  const bootId = await report({ startedUnixMs })
  const { resourceSpans } = JSON.parse((await get(bootId, 'otlp')).text) as {
    resourceSpans: { scopeSpans: { spans: { name: string; links?: object[] }[] }[] }[]
  }
  const root = resourceSpans[0]?.scopeSpans[0]?.spans.find(({ name }) => name === 'boot')
  expect(root?.links).toEqual([{ traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }])
  site().api.clock.advance(11 * 60_000)
  const later = await report({ startedUnixMs: startedUnixMs + 11 * 60_000 })
  expect(JSON.parse((await get(later, 'json')).text)).toMatchObject({ startedBy: null })
})
