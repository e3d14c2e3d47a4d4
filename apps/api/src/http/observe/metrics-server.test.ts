import { readFileSync } from 'node:fs'
import { parser } from '@prometheus-io/lezer-promql'
import { expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { ApiMetrics } from './api-metrics.ts'
import { addFleetGauges } from './fleet-gauges.ts'

const read = (name: string) => readFileSync(new URL(`../../../../../docs/reference/${name}`, import.meta.url), 'utf8')
/** The series that Prometheus derives from one histogram. */
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
    new URL('../../../../../edge/streamer-zig/src/host/metrics/page.zig', import.meta.url),
    'utf8',
  )
  return [...page.matchAll(/\b(?:head|gauge|counter|seconds)\(\s*writer,\s*"(\w+)"/g)].map(
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

interface AlertRules {
  groups: { name: string; rules: { alert: string; expr: string; for?: string; annotations: object }[] }[]
}

/** Where Prometheus's own grammar takes it for something else than PromQL. */
function mistakesIn(expression: string): string[] {
  const mistakes: string[] = []
  parser
    .configure({ top: 'PromQL' })
    .parse(expression)
    .iterate({
      enter({ type, from }) {
        if (type.isError) mistakes.push(expression.slice(from, from + 20))
      },
    })
  return mistakes
}

interface Dashboard {
  panels: { id: number; title: string; datasource?: { uid: string }; targets?: { expr: string }[] }[]
}

test('the dashboard names only metrics that exist, in queries that Prometheus reads', async () => {
  const known = new Set([...(await metricNames()), ...edgeMetricNames()])
  const { panels } = JSON.parse(read('grafana-dashboard.json')) as Dashboard
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  expect(expressions.length).toBeGreaterThan(20)
  const names = expressions.flatMap(namesIn)
  expect(names.filter((name) => !known.has(name) && !known.has(name.replace(ofHistogram, '')))).toEqual([])
  // Grafana replaces its variable by a duration.
  expect(expressions.flatMap((expr) => mistakesIn(expr.replaceAll('$__rate_interval', '5m')))).toEqual([])
  expect(expressions.flatMap((expr) => expr.match(/\$(?!__rate_interval)\w+/g) ?? [])).toEqual([])
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  for (const { datasource, targets } of panels) if (targets) expect(datasource?.uid).toMatch(/^\$\{datasource\}$/)
})

test('alert rules are what Prometheus reads', () => {
  expect(mistakesIn('sum by (le) (rate(x[5m])')).toHaveLength(1)
  expect(mistakesIn('max(x{state=offline}) > 0').length).toBeGreaterThan(0)
  const { groups } = parseYaml(read('alert-rules.yml')) as AlertRules
  const rules = groups.flatMap((group) => group.rules)
  expect(rules.length).toBeGreaterThan(8)
  for (const { alert, expr, for: duration = '0s', annotations } of rules)
    expect([alert, mistakesIn(expr), duration, annotations]).toEqual([
      expect.stringMatching(/^Bootfarm[A-Za-z]+$/),
      [],
      expect.stringMatching(/^\d+[smh]$/),
      { summary: expect.any(String) },
    ])
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
})
