import { mkdtempSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { inRoot, streamBenchProgram } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { machinePackages, requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, buildStoreBench, buildStreamBench, ensureZig } from '../lib/toolchain.mjs'
import { casesNamed } from './cases.mjs'
import { burst, jumbo, read } from './field/asking.mjs'
import { link, measureCells, Way } from './field/boots.mjs'
import { cold, merge, storage } from './field/keeping.mjs'
import { judgeMatrix, matrixMarkdown } from './field/matrix.mjs'
import { parseMatrix } from './field/settings.mjs'
import { Storages } from './field/storages.mjs'
import { storm } from './field/storm.mjs'
import { flowed, table } from './field/table.mjs'
import { bytesOf, readsOf } from './field/traces.mjs'
import { keepResult } from './results.mjs'
import { Cable } from './stream/cable.mjs'
import { debianDisk } from './stream/debian-disk.mjs'
import { WatchedProcess } from './watched-process.mjs'

const packages = [
  { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/ethtool', '/sbin/ethtool'], debian: 'ethtool' },
]
const forDebian = [...machinePackages, { paths: ['/usr/bin/nbdkit'], debian: 'nbdkit' }]
/** In the order of the document. */
const experiments = { burst, jumbo, read, cold, storage, storm, merge }
const imageMib = 1024
const imageLimitMs = 120_000
const trace = inRoot('e2e/traces/boot-trace-bios.csv')
const matrixRepeat = 5
const usualSeed = 1

/**
 * Repeats the experiments that others published about Citrix Provisioning, or measures the cells of a matrix of
 * settings.
 * @param {{ rounds: number, write: boolean, only: string, matrix: string[], repeat?: number, seed?: number }} given
 */
export async function benchField(given) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  const options = { ...given, seed: given.seed ?? usualSeed }
  const matrix = options.matrix.length > 0 ? parseMatrix(options.matrix) : undefined
  const names = matrix ? [] : casesNamed('field', Object.keys(experiments), options.only)
  const isPacked = matrix?.levels.answers?.includes('packed') ?? false
  await requirePackages('npm run bench -- field', isPacked ? [...packages, ...forDebian] : packages)
  const zig = await ensureZig()
  await buildEdge(zig)
  await buildStreamBench(zig)
  if (names.includes('merge')) await buildStoreBench(zig)
  const begun = { date: new Date().toISOString(), machine: machineLines(), command: commandOf(options) }
  await withLab(isPacked, async (lab) => {
    if (matrix) await runMatrix(lab, matrix, { ...options, begun })
    else await runExperiments(lab, names, { ...options, begun })
  })
}

async function runExperiments(lab, names, { rounds, write, seed, begun }) {
  const found = {}
  const failures = []
  for (const name of names) {
    try {
      found[name] = await experiments[name].measure(lab, { repeat: rounds, seed })
    } catch (error) {
      if (lab.site.isStopped || !(error instanceof UserError)) throw error
      failures.push(`${name}: ${error.message}`)
      say(failures.at(-1))
    }
  }
  const result = { ...begun, seed, rounds, failures, found }
  const text = experimentsMarkdown(result)
  process.stdout.write(`\n${text}\n`)
  const isWhole = names.length === Object.keys(experiments).length
  if (write && isWhole) keepResult('field-experiments', result, text)
  else if (write) say('Not written: only a run of all experiments is.')
  if (failures.length > 0) throw new UserError(`not all could be measured: ${failures.join(' ')}`)
}

async function runMatrix(lab, matrix, { repeat = matrixRepeat, seed, write, begun }) {
  const measured = await measureCells(lab, matrix.cells, { repeat, seed, name: 'matrix' })
  const judged = judgeMatrix(matrix, measured, seed)
  const result = { ...begun, seed, repeat, matrix, measured, judged, trace: traceLine(lab.trace) }
  const text = flowed(matrixMarkdown(result))
  process.stdout.write(`\n${text}\n`)
  if (write) keepResult('field-matrix', result, text)
}

/** Makes the network, the disk and its stores, and removes them at the end. */
async function withLab(isPacked, use) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  const cable = new Cable()
  const way = new Way(cable)
  const storages = new Storages(scratch)
  let holder
  try {
    const site = { cable, scratch, isStopped: false }
    for (const signal of ['SIGINT', 'SIGTERM'])
      process.once(signal, () => {
        site.isStopped = true
        cable.endAll()
      })
    const made = isPacked ? await debian(scratch) : await pattern(scratch)
    holder = made.holder
    Object.assign(site, made.site)
    await use({ site, way, storages, trace: made.trace, devices: { next: 1 } })
  } finally {
    await way.remove()
    await holder?.stop()
    cable.remove()
    storages.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** A disk of known bytes, which the storm reads from the page cache. */
async function pattern(scratch) {
  const image = path.join(scratch, 'disk.raw')
  const args = ['image', '--file', image, '--mib', String(imageMib)]
  const holder = new WatchedProcess({ command: streamBenchProgram, args })
  await holder.waitFor(/held/, imageLimitMs)
  return { site: { image, imageMib }, trace, holder }
}

/** A Debian, whose bytes can be packed. */
async function debian(scratch) {
  const { disk, trace: recorded } = await debianDisk(scratch)
  const size = statSync(disk).size
  return { site: { image: disk, content: disk, imageMib: Math.floor(size / 2 ** 20) }, trace: recorded }
}

function machineLines() {
  const [processor] = os.cpus()
  return [
    `${os.cpus().length} processors (${processor?.model ?? 'unknown'}), Linux ${os.release()}, load ${os.loadavg()[0].toFixed(2)} before.`,
    `One edge, as released, and the devices (\`stream-bench replay\`, every byte compared) on the same machine, in two network namespaces behind a switch whose port has ${link.mbitPerSecond} Mb/s and a queue of ${link.queueKb} KiB (tbf), with a round trip of ${link.roundTripUs} µs.`,
  ]
}

function traceLine(file) {
  const reads = readsOf(file)
  const mb = (bytesOf(reads) / 1e6).toFixed(1)
  return `A boot is the reads of a recorded boot of Debian (${reads.length} reads, ${mb} MB), without its think times, from the open session to the last byte.`
}

function commandOf({ rounds, only, matrix, repeat, seed }) {
  const given = [
    ...matrix.map((text) => `--matrix ${text}`),
    ...(repeat === undefined ? [] : [`--repeat ${repeat}`]),
    ...(only === '' ? [] : [`--only ${only}`]),
    ...(rounds === 3 ? [] : [`--rounds ${rounds}`]),
    `--seed ${seed}`,
  ]
  return ['npm run bench -- field', ...given].join(' ')
}

function experimentsMarkdown({ date, command, machine, rounds, failures, found }) {
  const sections = Object.entries(found).map(
    ([name, measured]) => `## ${experiments[name].title}\n\n${experiments[name].text(measured)}\n`,
  )
  const summary = Object.entries(found).flatMap(([name, measured]) => experiments[name].summary(measured))
  return flowed(`# Published experiments, repeated

What practitioners measured and published about Citrix Provisioning (PVS), repeated with Bootfarm, beside their figures.

- ${date}, \`${command}\`
${machine.map((line) => `- ${line}`).join('\n')}
- ${traceLine(trace)}
- Each cell ${rounds} times unless the text says otherwise, in rounds of all cells, each round in another random order. Medians, and in parentheses the least and the most: with three values these cover the median of such boots with 75 %.
- The published figures come from other machines, a real network, and Windows. Ratios within one column can be compared with ratios within another; seconds beside seconds say how far apart the two are, not why.
${failures.map((failure) => `- Not measured: ${failure}\n`).join('')}

${table(['', 'published', 'here'], summary)}

${sections.join('\n')}`)
}
