import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { ensureKernel, findKernel } from '../lib/machines/kernel.mjs'
import { inRoot, simProgram } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, ensureZig } from '../lib/toolchain.mjs'
import { Cable } from './tftp/cable.mjs'
import { measureFlood } from './tftp/flood.mjs'
import { processorSeconds, startServers } from './tftp/servers.mjs'
import { asJson, asMarkdown } from './tftp/table.mjs'
import { WatchedProcess } from './watched-process.mjs'

const packages = [
  { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/ethtool', '/sbin/ethtool'], debian: 'ethtool' },
  { paths: ['/usr/sbin/atftpd'], debian: 'atftpd' },
  { paths: ['/usr/sbin/dnsmasq'], debian: 'dnsmasq-base' },
]
/** Enough for a vDisk that a simulated device boots from. */
const diskSize = 419_430_400
const files = { big: 64_000_000, small: 1_000_000 }
/** Of one transfer: hundreds of times what it takes. */
const transferLimitMs = 60_000

/** Small files are read several times in a row: once is over before the processor's clock has moved. */
const cases = [
  { name: '64 MB, windowsize 1', file: 'big', clients: 1, windowsize: 0, repeats: 1 },
  { name: '64 MB, windowsize 4', file: 'big', clients: 1, windowsize: 4, repeats: 1 },
  { name: '64 MB, windowsize 16', file: 'big', clients: 1, windowsize: 16, repeats: 1 },
  { name: '64 MB, windowsize 64', file: 'big', clients: 1, windowsize: 64, repeats: 1 },
  { name: '16 x 1 MB, windowsize 1', file: 'small', clients: 16, windowsize: 0, repeats: 4 },
  { name: '16 x 1 MB, windowsize 4', file: 'small', clients: 16, windowsize: 4, repeats: 4 },
]

/**
 * Reads files from us and from others by the same client, in turns, and prints medians, extremes and ratios; then boots a device
 * while requests come under false addresses.
 * @param {{ rounds: number, write: boolean, only: string }} options
 */
export async function benchTftp({ rounds, write, only }) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  const chosen = cases.filter(({ name }) => name.includes(only))
  if (chosen.length === 0) throw new UserError(`no case is named ${only}: ${cases.map(({ name }) => name).join('; ')}.`)
  await requirePackages('npm run bench -- tftp', packages)
  await buildEdge(await ensureZig())
  const kernelMissing = await ensureKernel('virtual')
  if (kernelMissing) throw new UserError(`there is no kernel to boot: ${kernelMissing}.`)

  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  // atftpd and dnsmasq give only what everybody may read.
  chmodSync(scratch, 0o755)
  const cable = new Cable()
  let servers = []
  try {
    const { served, hashes } = makeFiles(scratch)
    servers = await startServers(cable, served)
    const loadBefore = os.loadavg()[0]
    const transfers = await measureAll(cable, servers, hashes, { rounds, chosen })
    const flood = only === '' ? await measureFlood(cable, servers[0], rounds) : undefined
    const result = {
      date: new Date().toISOString(),
      rounds,
      processors: os.cpus().length,
      loadBefore,
      transfers,
      flood,
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keep(result)
  } finally {
    for (const server of servers) await server.process.stop()
    cable.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function measureAll(cable, servers, hashes, { rounds, chosen }) {
  const transfers = []
  for (const mode of ['S', 'U']) {
    cable.setMode(mode)
    for (let round = 0; round < rounds; round++) {
      for (const what of chosen) {
        // Whoever comes first has the colder machine.
        const turns = round % 2 === 0 ? servers : servers.toReversed()
        for (const server of turns) {
          if (what.windowsize > 1 && !server.hasWindows) continue
          const measured = await transfer(cable, server, what, hashes[what.file])
          transfers.push({ mode, case: what.name, by: server.by, ...measured })
        }
      }
      say(`mode ${mode}, round ${round + 1} of ${rounds}`)
    }
  }
  return transfers
}

/** Bytes a second, and the server's processor time for each 10^9 bytes. */
async function transfer(cable, server, what, hash) {
  const before = processorSeconds(server.process.pid)
  let seconds = 0
  let bytes = 0
  let retries = 0
  for (let repeat = 0; repeat < what.repeats; repeat++) {
    const program = cable.onClient(simProgram, [
      'tftp-get',
      '--server',
      server.ip,
      '--file',
      what.file,
      '--clients',
      String(what.clients),
      '--windowsize',
      String(what.windowsize),
    ])
    const client = new WatchedProcess(program)
    try {
      const { match } = await client.waitFor(/^\{.*\}$/m, transferLimitMs)
      const got = JSON.parse(match[0])
      if (got.sha256 !== hash)
        throw new UserError(`${server.by} sent other bytes than ${what.file} has (${what.name}).`)
      if (got.windowsize !== Math.max(1, what.windowsize))
        throw new UserError(`${server.by} agreed to windowsize ${got.windowsize} in ${what.name}.`)
      seconds += got.seconds
      bytes += got.bytes
      retries += got.retries
    } finally {
      await client.stop()
    }
  }
  const processor = processorSeconds(server.process.pid) - before
  return { mbPerSecond: bytes / seconds / 1e6, processorSecondsPerGb: processor / (bytes / 1e9), retries }
}

/** Two files that everybody serves, and what a device needs to boot from us. */
function makeFiles(scratch) {
  const folder = path.join(scratch, 'files')
  mkdirSync(folder)
  const hashes = {}
  for (const [name, size] of Object.entries(files)) {
    const bytes = randomBytes(size)
    writeFileSync(path.join(folder, name), bytes)
    hashes[name] = createHash('sha256').update(bytes).digest('hex')
  }
  // What the edge names to a device whose firmware is a BIOS.
  writeFileSync(path.join(folder, 'undionly.kpxe'), randomBytes(70_000))
  const disk = path.join(scratch, 'disk.raw')
  writeFileSync(disk, '')
  truncateSync(disk, diskSize)
  const { vmlinuz } = findKernel('virtual')
  return { served: { files: folder, disk, kernel: vmlinuz, data: path.join(scratch, 'edge') }, hashes }
}

function keep(result) {
  const folder = inRoot('docs/results')
  mkdirSync(folder, { recursive: true })
  const file = path.join(folder, `${result.date.slice(0, 10)}-tftp`)
  writeFileSync(`${file}.md`, asMarkdown(result))
  writeFileSync(`${file}.json`, asJson(result))
  say(`kept in ${path.relative(inRoot(), file)}.md and .json`)
}
