import path from 'node:path'
import {
  isWithin,
  type OtlpSpan,
  spanAttributes,
  startTraceCollector,
  type TraceCollector,
} from '@bootfarm/api/testing/trace-collector'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../scripts/lib/free-ports.mjs'
import { Exposition } from '../lib/assert/exposition.ts'
import { ControlPlane, migrate } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge, type PrintedBoot } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
const token = 'a token of scrapers'
let collector: TraceCollector
let plane: ControlPlane
let edge: ControlledEdge
let apiMetrics: string

/** Starts both programs as an operator who monitors them. */
beforeAll(async () => {
  const [apiPort = 0] = await freePorts(1)
  apiMetrics = `http://127.0.0.1:${apiPort}/metrics`
  collector = await startTraceCollector()
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'), migrate, {
    METRICS_PORT: String(apiPort),
    METRICS_TOKEN: token,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  })
  edge = await ControlledEdge.start(plane, path.join(scratch.path, 'site'), ['--json'])
})
afterAll(async () => {
  await edge?.stop()
  await plane?.stop()
  await collector?.close()
  scratch.remove()
})

async function eventually<T>(ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function scrape(url: string): Promise<Exposition> {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  return new Exposition(await answer.text())
}

const named = (spans: OtlpSpan[], name: string) => spans.find((span) => span.name === name) as OtlpSpan

test('a boot is one trace from firmware to ready, and both programs count it', async () => {
  await eventually(async () => ((await edge.query<{ appliedState: unknown }>()).appliedState ? true : undefined))
  const booted = await edge.boots()
  expect(booted).toEqual(edge.tenant.macs.map((mac) => expect.objectContaining({ mac, outcome: 'ready' })))
  // The edge prints its boots in a thread of its own.
  const boots: PrintedBoot[] = await eventually(() => {
    const printed = [...edge.printedBoots().values()]
    return printed.length >= booted.length ? printed : undefined
  })
  expect(boots).toHaveLength(booted.length)
  for (const { id } of boots) {
    const own = await eventually(() => {
      const found = collector.spans.filter(({ traceId }) => traceId === id.replaceAll('-', ''))
      return found.length > 0 ? found : undefined
    })
    const root = named(own, 'boot')
    expect(spanAttributes(root)).toMatchObject({
      'bootfarm.edge.id': edge.edgeId,
      'bootfarm.boot.outcome': 'ready',
    })
    const phases = own.filter((span) => span !== root)
    expect(phases.map(({ name }) => name)).toEqual(expect.arrayContaining(['dhcp', 'nbp', 'stage2', 'ready']))
    for (const phase of phases)
      expect([phase.name, phase.parentSpanId, isWithin(phase, root)]).toEqual([phase.name, root.spanId, true])
    // They are in order of time.
    const begins = phases.map(({ startTimeUnixNano }) => BigInt(startTimeUnixNano))
    expect(begins).toEqual(begins.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0)))
  }

  const ofEdge = await eventually(async () => {
    const page = await scrape(edge.metricsUrl)
    return page.value('bootfarm_edge_boots_total', { outcome: 'ready' }) === boots.length &&
      page.value('bootfarm_edge_report_backlog') === 0
      ? page
      : undefined
  })
  for (const name of ['block_cache_bytes', 'store_size_bytes', 'memory_available_bytes'])
    expect(ofEdge.value(`bootfarm_edge_${name}`)).toBeGreaterThan(0)
  for (const name of ['reports_lost_total', 'report_gaps', 'report_gap_reports', 'devices_booting'])
    expect([name, ofEdge.value(`bootfarm_edge_${name}`)]).toEqual([name, 0])
  expect(ofEdge.value('bootfarm_edge_uplink_up')).toBe(1)
  const ofApi = await scrape(apiMetrics)
  expect(ofApi.value('bootfarm_boots_total', { outcome: 'ready' })).toBe(boots.length)
  expect(ofApi.value('bootfarm_boot_duration_seconds_count')).toBe(boots.length)
  expect((await fetch(apiMetrics)).status).toBe(401)
})

test('a request of the edge is a trace with its SQL statements', async () => {
  const request = await eventually(() => collector.spans.find(({ name }) => name === 'POST /edge/v1/reports'))
  const statements = await eventually(() => {
    const found = collector.spans.filter(({ parentSpanId }) => parentSpanId === request.spanId)
    return found.length === spanAttributes(request)['bootfarm.db.query_count'] ? found : undefined
  })
  expect(statements.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['begin', 'update report_cursor', 'commit']),
  )
  for (const statement of statements) expect(isWithin(statement, request)).toBe(true)
  expect(JSON.stringify(collector.spans)).not.toContain(edge.tenant.macs[0])
})
