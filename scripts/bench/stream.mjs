import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { streamBenchProgram } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, buildStreamBench, ensureZig } from '../lib/toolchain.mjs'
import { keepResult } from './results.mjs'
import { Cable } from './stream/cable.mjs'
import { fleetCases, measureFleet } from './stream/fleet.mjs'
import { judge } from './stream/goals.mjs'
import { lossCases, measureLosses } from './stream/losses.mjs'
import { measurePorts, portCases } from './stream/ports.mjs'
import { measureReplays, replayCases } from './stream/replays.mjs'
import { peersHere } from './stream/servers.mjs'
import { asMarkdown } from './stream/table.mjs'
import { measureThroughput, throughputCases } from './stream/throughput.mjs'
import { WatchedProcess } from './watched-process.mjs'

const packages = [
  { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/tc', '/sbin/tc'], debian: 'iproute2' },
  { paths: ['/usr/sbin/ethtool', '/sbin/ethtool'], debian: 'ethtool' },
  { paths: ['/usr/bin/nbdkit'], debian: 'nbdkit' },
  { paths: ['/usr/bin/qemu-nbd'], debian: 'qemu-utils' },
]
/** In the order of the tables. */
const parts = [
  { part: 'throughput', cases: throughputCases, measure: measureThroughput },
  { part: 'losses', cases: lossCases, measure: measureLosses },
  { part: 'ports', cases: portCases, measure: measurePorts },
  { part: 'replays', cases: replayCases, measure: measureReplays },
  { part: 'fleet', cases: fleetCases, measure: measureFleet },
]
const imageMib = 1024
/** Includes writing it to the disk. */
const imageLimitMs = 120_000
const measureMs = 1_000
const quickMeasureMs = 300

/**
 * Reads one disk from us and from NBD servers with the same client, in turns, and prints medians, extremes, ratios and
 * the goals that were reached.
 * @param {{ rounds: number, write: boolean, only: string, quick: boolean, before?: string }} options
 */
export async function benchStream({ rounds, write, only, quick, before }) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  const isOne = parts.some(({ cases }) => cases.some(({ name }) => name === only))
  const isChosen = ({ name }) => (isOne ? name === only : name.includes(only))
  const chosen = parts
    .map((part) => ({ ...part, cases: part.cases.filter(isChosen) }))
    .filter(({ cases }) => cases.length > 0)
  if (chosen.length === 0) {
    const names = parts.flatMap(({ cases }) => cases.map(({ name }) => name))
    throw new UserError(`no case is named ${only}: ${names.join('; ')}.`)
  }
  await requirePackages('npm run bench -- stream', packages)
  const zig = await ensureZig()
  await buildEdge(zig)
  await buildStreamBench(zig)

  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  const image = path.join(scratch, 'disk.raw')
  const cable = new Cable()
  const held = new WatchedProcess({
    command: streamBenchProgram,
    args: ['image', '--file', image, '--mib', String(imageMib)],
  })
  try {
    await held.waitFor(/held/, imageLimitMs)
    const site = { cable, image, imageMib, scratch, peers: peersHere(before), isStopped: false }
    for (const signal of ['SIGINT', 'SIGTERM'])
      process.once(signal, () => {
        site.isStopped = true
        cable.endAll()
      })
    const how = quick ? { rounds: 1, measureMs: quickMeasureMs } : { rounds, measureMs }
    const machine = machineFacts()
    const { measured, failures } = await measureAll(site, chosen, how)
    const result = {
      date: new Date().toISOString(),
      command: commandOf({ rounds, only, quick, before }),
      rounds: how.rounds,
      machine: { ...machine, loadAfter: os.loadavg()[0] },
      goals: judge(measured),
      failures,
      ...measured,
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keepResult('stream', result, asMarkdown(result))
    if (failures.length > 0) throw new UserError(`not all could be measured: ${failures.join(' ')}`)
  } finally {
    await held.stop()
    cable.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** A failed part does not stop the others. */
async function measureAll(site, chosen, how) {
  const measured = {}
  const failures = []
  for (const { part, cases, measure } of chosen) {
    try {
      measured[part] = await measure(site, { ...how, cases })
    } catch (error) {
      if (site.isStopped || !(error instanceof UserError)) throw error
      failures.push(`${part}: ${error.message}`)
      say(failures.at(-1))
    }
  }
  return { measured, failures }
}

function machineFacts() {
  const versionOf = (program) =>
    execFileSync(program, ['--version'], { encoding: 'utf8' }).match(/\d+(\.\d+)+/)?.[0] ?? ''
  return {
    processors: os.cpus().length,
    model: os.cpus()[0]?.model ?? '',
    kernel: os.release(),
    nbdkit: versionOf('/usr/bin/nbdkit'),
    qemuNbd: versionOf('/usr/bin/qemu-nbd'),
    loadBefore: os.loadavg()[0],
  }
}

function commandOf({ rounds, only, quick, before }) {
  const options = [
    ...(rounds === 3 ? [] : [`--rounds ${rounds}`]),
    ...(only === '' ? [] : [`--only '${only}'`]),
    ...(quick ? ['--quick'] : []),
    ...(before === undefined ? [] : ['--before bootfarm-edge']),
  ]
  return ['npm run bench -- stream', ...options].join(' ')
}
