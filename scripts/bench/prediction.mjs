import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isColdBoot } from '../../apps/api/src/boot/read-times.ts'
import { predictStorm } from '../../apps/api/src/prediction/model/predict-storm.ts'
import { recordedBootOf } from '../../apps/api/src/prediction/model/recorded-boot.ts'
import { siteModelOf } from '../../apps/api/src/prediction/model/site-model.ts'
import { runInTurns } from '../../apps/api/src/prediction/run-in-turns.ts'
import { UserError } from '../lib/fail.mjs'
import { say, step } from '../lib/progress.mjs'
import { requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, ensureZig } from '../lib/toolchain.mjs'
import { casesNamed } from './cases.mjs'
import { calibration, configurations } from './prediction/configurations.mjs'
import { makeDisks } from './prediction/disks.mjs'
import { Line } from './prediction/line.mjs'
import { bootStorm } from './prediction/storms.mjs'
import { asMarkdown, judge } from './prediction/table.mjs'
import { keepResult } from './results.mjs'

const packages = [
  { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/tc', '/sbin/tc'], debian: 'iproute2' },
  { paths: ['/usr/sbin/ethtool', '/sbin/ethtool'], debian: 'ethtool' },
  { paths: ['/usr/bin/taskset'], debian: 'util-linux' },
]
const bytesPerUsOf = (mbps) => mbps / 8

/**
 * Predicts storms, each before it is measured, from single boots and one other storm, and measures them with a real
 * edge and simulated devices.
 * @param {{ only: string, write: boolean }} options
 */
export async function benchPrediction({ only, write }) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  const names = casesNamed(
    'prediction',
    configurations.map(({ name }) => name),
    only,
  )
  await requirePackages('npm run bench -- prediction', packages)
  await buildEdge(await ensureZig())
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  const line = new Line()
  try {
    const disks = await step('Making disks', () => makeDisks(scratch))
    const site = { line, scratch, isStopped: false, ...disks }
    for (const signal of ['SIGINT', 'SIGTERM'])
      process.once(signal, () => {
        site.isStopped = true
        line.endAll()
      })
    const loadBefore = os.loadavg()[0]
    const known = await calibrate(site)
    const measured = []
    const failures = []
    for (const configuration of configurations.filter(({ name }) => names.includes(name)))
      try {
        measured.push(await measureOne(site, known, configuration))
      } catch (error) {
        if (site.isStopped || !(error instanceof UserError)) throw error
        failures.push(`${configuration.name}: ${error.message}`)
        say(failures.at(-1))
      }
    const machine = { processors: os.cpus().length, model: os.cpus()[0]?.model ?? '', loadBefore }
    const result = {
      date: new Date().toISOString(),
      machine: { ...machine, loadAfter: os.loadavg()[0] },
      model: known.facts,
      judged: judge(measured),
      measured,
      failures,
      boots: known.boots,
    }
    const text = asMarkdown(result)
    process.stdout.write(`\n${text}\n`)
    if (write && names.length === configurations.length) keepResult('prediction', result, text)
    else if (write) say('Not written: only a run of all configurations is.')
    if (failures.length > 0) throw new UserError(`not all could be measured: ${failures.join(' ')}`)
  } finally {
    line.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The model of the site, and what its edge's processor carries: as the API knows them from reports and heartbeats. */
async function calibrate(site) {
  const boots = []
  let processorBytesPerUs = null
  for (const configuration of calibration) {
    const storm = await bootStorm(site, configuration)
    say(`known: ${configuration.devices} x ${configuration.version}, median ${storm.p50.toFixed(2)} s`)
    boots.push(...storm.reports.map((report) => bootOf(report, configuration)))
    // Only the storm keeps the processor busy enough to tell; it is the last one.
    const sent = boots.slice(-configuration.devices).flatMap(({ bytes }) => bytes)
    processorBytesPerUs = sent.reduce((sum, one) => sum + one, 0) / (storm.processorSeconds * 1e6)
  }
  const model = await runInTurns(siteModelOf(boots))
  const { reach, overlap, unfairness, residual } = model
  const facts = { reach, overlap, unfairness, residual, processorBytesPerUs }
  say(`model: ${JSON.stringify(facts)}`)
  return { model, processorBytesPerUs, facts, boots }
}

function bootOf(report, { version, mbps }) {
  const recorded = recordedBootOf({
    ...report,
    versionId: version,
    edgeId: 'edge',
    linkBytesPerUs: bytesPerUsOf(mbps),
    startedAtMs: report.startedUnixMs,
    isCold: isColdBoot(report.readTimes) ?? false,
  })
  if (!recorded)
    throw new UserError(`the edge's report of a boot has no series: ${JSON.stringify(report).slice(0, 500)}`)
  return recorded
}

async function measureOne(site, { model, processorBytesPerUs }, configuration) {
  const { version, devices, mbps, startsPerSecond, isCold, name } = configuration
  const begin = performance.now()
  const edge = { linkBytesPerUs: bytesPerUsOf(mbps), processorBytesPerUs }
  const question = { versionId: version, devices, startsPerSecond, isCold, edges: [edge], deviceBytesPerUs: null }
  const predicted = await runInTurns(predictStorm(model, question))
  const predictedMs = performance.now() - begin
  const { p50, p95, last, linkShare } = await bootStorm(site, configuration)
  say(`${name}: ${(predicted.p50Us.value / 1e6).toFixed(1)} s predicted, ${p50.toFixed(1)} s measured (median)`)
  return { ...configuration, predicted, predictedMs, found: { p50, p95, last, linkShare } }
}
