import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ApiMetrics } from './api-metrics.ts'
import { addFleetGauges } from './fleet-gauges.ts'

const read = (name: string) => readFileSync(new URL(`../../../../docs/${name}`, import.meta.url), 'utf8')
/** What Prometheus makes of one histogram. */
const ofHistogram = /_(bucket|sum|count)$/

async function metricNames(): Promise<Set<string>> {
  const metrics = new ApiMetrics({ version: '1', pool: () => ({ total: 0, idle: 0, waiting: 0 }) })
  addFleetGauges(metrics.registry, { read: () => Promise.reject(new Error('no database')), now: () => 0 })
  return new Set((await metrics.registry.getMetricsAsJSON()).map(({ name }) => name))
}

function namesIn(text: string): string[] {
  const names = text.match(/\b(bootfarm|nodejs|process)_[a-z0-9_]+[a-z0-9]\b/g) ?? []
  return [...new Set(names)]
}

/** The edge's page writes each name once, without what all begin with. */
function edgeMetricNames(): string[] {
  const page = readFileSync(
    new URL('../../../../edge/streamer-zig/src/host/metrics_page.zig', import.meta.url),
    'utf8',
  )
  return [...page.matchAll(/\b(?:head|gauge|seconds)\(writer, "(\w+)"/g)].map(
    ([, name]) => `bootfarm_edge_${name}`,
  )
}

test('alert rules and the document name only metrics that exist, and the document names all of ours', async () => {
  const known = new Set([...(await metricNames()), ...edgeMetricNames()])
  const base = (name: string) => (known.has(name) ? name : name.replace(ofHistogram, ''))
  const rules = namesIn(read('alert-rules.yml'))
  const told = namesIn(read('observability.md'))
  expect(rules.length).toBeGreaterThan(8)
  expect([...rules, ...told].filter((name) => !known.has(base(name)))).toEqual([])
  expect([...known].filter((name) => name.startsWith('bootfarm_') && !told.includes(name))).toEqual([])
})
