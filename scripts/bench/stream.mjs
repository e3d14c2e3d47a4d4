import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { streamBenchProgram } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { machinePackages, requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, buildStreamBench, ensureZig } from '../lib/toolchain.mjs'
import { keepResult } from './results.mjs'
import { Cable } from './stream/cable.mjs'
import { debianDisk } from './stream/debian-disk.mjs'
import { fleetCases, measureFleet } from './stream/fleet.mjs'
import { judge, judgeContent } from './stream/goals.mjs'
import { lossCases, measureLosses } from './stream/losses.mjs'
import { measurePorts, portCases } from './stream/ports.mjs'
import { measureReplays, replayCases } from './stream/replays.mjs'
import { peersHere } from './stream/servers.mjs'
import { asMarkdown } from './stream/table.mjs'
import { contentCases, measureThroughput, throughputCases } from './stream/throughput.mjs'
import { WatchedProcess } from './watched-process.mjs'

const packages = [
  { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/tc', '/sbin/tc'], debian: 'iproute2' },
  { paths: ['/usr/sbin/ethtool', '/sbin/ethtool'], debian: 'ethtool' },
  { paths: ['/usr/bin/nbdkit'], debian: 'nbdkit' },
  { paths: ['/usr/bin/qemu-nbd'], debian: 'qemu-utils' },
]
/** In the order of the tables. */
const patternParts = [
  { part: 'throughput', cases: throughputCases, measure: measureThroughput },
  { part: 'losses', cases: lossCases, measure: measureLosses },
  { part: 'ports', cases: portCases, measure: measurePorts },
  { part: 'replays', cases: replayCases, measure: measureReplays },
  { part: 'fleet', cases: fleetCases, measure: measureFleet },
]
/** With a disk of real content; the last part reads the whole disk, the others its bytes without zeros. */
const contentParts = [
  { part: 'throughput', cases: contentCases, measure: measureThroughput },
  { part: 'ports', cases: portCases.slice(0, 1), measure: measurePorts },
  { part: 'replays', cases: [{ name: 'boot replay, debian' }], measure: measureReplays },
]
const imageMib = 1024
/** Includes writing it to the disk. */
const imageLimitMs = 120_000
const measureMs = 1_000
const quickMeasureMs = 300

/**
 * Reads one disk from us and from NBD servers with the same client, in turns, and prints medians, extremes, ratios and
 * the goals that were reached.
 * @param {{ rounds: number, write: boolean, only: string, quick: boolean, before?: string,
 *   content: 'pattern' | 'debian' }} options
 */
export async function benchStream({ rounds, write, only, quick, before, content }) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  const parts = content === 'debian' ? contentParts : patternParts
  const isOne = parts.some(({ cases }) => cases.some(({ name }) => name === only))
  const isChosen = ({ name }) => (isOne ? name === only : name.includes(only))
  const chosen = parts
    .map((part) => ({ ...part, cases: part.cases.filter(isChosen) }))
    .filter(({ cases }) => cases.length > 0)
  if (chosen.length === 0) {
    const names = parts.flatMap(({ cases }) => cases.map(({ name }) => name))
    throw new UserError(`no case is named ${only}: ${names.join('; ')}.`)
  }
  const needed = content === 'debian' ? [...packages, ...machinePackages] : packages
  await requirePackages('npm run bench -- stream', needed)
  const zig = await ensureZig()
  await buildEdge(zig)
  await buildStreamBench(zig)

  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  const cable = new Cable()
  const held = []
  try {
    const site = { cable, scratch, isStopped: false, ...(await disksOf(content, scratch, held)) }
    site.peers = peersHere({ before, stores: content === 'debian' ? scratch : undefined })
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
      command: commandOf({ rounds, only, quick, before, content }),
      content,
      rounds: how.rounds,
      machine: { ...machine, loadAfter: os.loadavg()[0] },
      goals: content === 'debian' ? judgeContent(measured) : judge(measured),
      failures,
      ...measured,
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keepResult(content === 'debian' ? 'stream-packed' : 'stream', result, asMarkdown(result))
    if (failures.length > 0) throw new UserError(`not all could be measured: ${failures.join(' ')}`)
  } finally {
    for (const one of held) await one.stop()
    cable.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Makes the disk that is measured; `held` get the processes that keep it in memory. */
async function disksOf(content, scratch, held) {
  if (content === 'debian') {
    const { disk, trace, dense, denseMib } = await debianDisk(scratch)
    const noiseFile = path.join(scratch, 'noise.raw')
    writeFileSync(noiseFile, randomBytes(denseMib * 2 ** 20))
    const whole = { image: disk, content: disk, imageMib: Math.floor(statSync(disk).size / 2 ** 20), trace }
    const noise = { image: noiseFile, content: noiseFile, imageMib: denseMib }
    return { image: dense, content: dense, imageMib: denseMib, whole, noise }
  }
  const image = path.join(scratch, 'disk.raw')
  const args = ['image', '--file', image, '--mib', String(imageMib)]
  const holder = new WatchedProcess({ command: streamBenchProgram, args })
  held.push(holder)
  await holder.waitFor(/held/, imageLimitMs)
  return { image, imageMib }
}

/** A failed part does not stop the others. */
async function measureAll(site, chosen, how) {
  const measured = {}
  const failures = []
  for (const { part, cases, measure } of chosen) {
    try {
      const of = part === 'replays' && site.whole ? { ...site, ...site.whole } : site
      const traced = cases.map((one) => (of.trace ? { ...one, trace: of.trace } : one))
      measured[part] = await measure(of, { ...how, cases: traced })
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

function commandOf({ rounds, only, quick, before, content }) {
  const options = [
    ...(content === 'pattern' ? [] : [`--content ${content}`]),
    ...(rounds === 3 ? [] : [`--rounds ${rounds}`]),
    ...(only === '' ? [] : [`--only '${only}'`]),
    ...(quick ? ['--quick'] : []),
    ...(before === undefined ? [] : ['--before bootfarm-edge']),
  ]
  return ['npm run bench -- stream', ...options].join(' ')
}
