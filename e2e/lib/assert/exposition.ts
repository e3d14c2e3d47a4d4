import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const toolchain = fileURLToPath(new URL('../../../.toolchain/prometheus-client', import.meta.url))
const reader = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families
json.dump([[family.name, family.type, family.documentation, [[sample.name, sample.labels, str(sample.value)] for sample in family.samples]]
           for family in text_string_to_metric_families(sys.stdin.read())], sys.stdout)`

const families = z.array(
  z.tuple([
    z.string(),
    z.string(),
    z.string(),
    z.array(z.tuple([z.string(), z.record(z.string(), z.string()), z.coerce.number()])),
  ]),
)

interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** Reads a /metrics page as Prometheus does. */
export class Exposition {
  readonly #samples: Sample[] = []

  /** Throws on an invalid line, and on what Prometheus would misread. */
  constructor(page: string) {
    for (const [name, type, help, samples] of readFamilies(page)) {
      if (type === 'unknown' || !help) throw new Error(`${name} has no TYPE or no HELP before it`)
      const read = samples.map(([sample, labels, value]) => ({ name: sample, labels, value }))
      if (type === 'histogram') requireHistogram(name, read)
      this.#samples.push(...read)
    }
  }

  /** Returns the one value that has these labels. */
  value(name: string, labels: Record<string, string> = {}): number {
    const wanted = Object.entries(labels)
    const found = this.#samples.filter(
      (sample) => sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value),
    )
    const [first] = found
    if (!first || found.length > 1) throw new Error(`${found.length} series are ${name} ${JSON.stringify(labels)}`)
    return first.value
  }
}

function readFamilies(page: string): z.infer<typeof families> {
  if (!page.endsWith('\n')) throw new Error('the last line has no end')
  const env = { ...process.env, PYTHONPATH: toolchain }
  const { status, stdout, stderr } = spawnSync('python3', ['-c', reader], {
    input: page,
    env,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`it is not read (prometheus-client is fetched by npm test -- reports):\n${stderr}`)
  return families.parse(JSON.parse(stdout))
}

/** For each set of labels the buckets must be cumulative, and the last one must hold everything. */
function requireHistogram(family: string, samples: Sample[]): void {
  const keyOf = ({ labels: { le: _, ...labels } }: Sample) => JSON.stringify(labels)
  for (const [key, series] of Map.groupBy(samples, keyOf)) {
    const buckets = series.filter(({ name }) => name === `${family}_bucket`)
    const bounds = buckets.map(({ labels }) => Number(labels.le?.replace('+Inf', 'Infinity')))
    const counts = buckets.map(({ value }) => value)
    const count = series.find(({ name }) => name === `${family}_count`)?.value
    const hasSum = series.some(({ name }) => name === `${family}_sum`)
    const isSorted = (numbers: number[]) => numbers.every((number, index) => number >= (numbers[index - 1] ?? 0))
    if (
      !isSorted(bounds) ||
      !isSorted(counts) ||
      bounds.at(-1) !== Number.POSITIVE_INFINITY ||
      counts.at(-1) !== count ||
      !hasSum
    )
      throw new Error(`${family} ${key} is no histogram`)
  }
}
