import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { Segment } from '../lib/lab/segment.mjs'
import { ensureKernel, findKernel } from '../lib/machines/kernel.mjs'
import { edgeProgram, inRoot } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, ensureZig } from '../lib/toolchain.mjs'
import { keepResult } from './results.mjs'
import { WatchedProcess } from './watched-process.mjs'

const deviceCount = 64
const requestCount = 10_000
const httpPort = 6980
/** The devices are behind a router, so that each has an address of its own. */
const network = '10.79.0'
/** No edge of any site. */
const otherEdge = '00000009-0000-4000-8000-000000000000'
const diskMib = 64
/** For starting, and for the attack. */
const limitMs = 120_000
const longestGoal = 2
const packages = [
  { paths: ['/usr/sbin/ip', '/sbin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/nft', '/sbin/nft'], debian: 'nftables' },
]
const program = (name) => inRoot('e2e/lib/device', `${name}.ts`)

/**
 * Attacks an edge whose devices read and write, and prints how long each had to wait, with the attack and without.
 * @param {{ rounds: number, write: boolean }} options
 */
export async function benchAttack({ rounds, write }) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  await requirePackages('npm run bench -- attack', packages)
  await buildEdge(await ensureZig())
  const kernelMissing = await ensureKernel('virtual')
  if (kernelMissing) throw new UserError(`there is no kernel to offer: ${kernelMissing}.`)
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  const segment = new Segment('attack')
  try {
    segment.routeThroughSwitch(`${network}.0/24`)
    const files = { disk: path.join(scratch, 'disk.raw'), initrd: path.join(scratch, 'initrd') }
    writeFileSync(files.disk, Buffer.alloc(diskMib * 1_048_576, 'bootfarm'))
    writeFileSync(files.initrd, Buffer.alloc(200_000, 'bootfarm'))
    const loadBefore = os.loadavg()[0]
    const measured = []
    for (let round = 0; round < rounds; round++) {
      const data = path.join(scratch, `data-${round}`)
      const one = await measureOnce(segment, { ...files, data }, round % 2 === 0)
      measured.push(one)
      say(`longest wait: ${one.quiet.longestMs.toFixed(0)} ms, under attack ${one.attacked.longestMs.toFixed(0)} ms`)
    }
    const result = {
      date: new Date().toISOString(),
      command: `npm run bench -- attack --rounds ${rounds}`,
      machine: { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length, loadBefore },
      measured,
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keepResult('attack', result, asMarkdown(result))
  } finally {
    segment.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Both loads last as long as the attack takes. */
async function measureOnce(segment, files, quietIsFirst) {
  const url = `http://${segment.edgeIp}:${httpPort}`
  const edge = new WatchedProcess(
    segment.onEdge(edgeProgram, [
      'serve',
      '--json',
      '--listen',
      segment.edgeIp,
      '--data',
      files.data,
      '--dhcp',
      'server',
      '--dhcp-pool',
      '10.78.0.100-10.78.0.119',
      '--trust-mac-from',
      `${network}.0/24`,
      '--vdisk',
      files.disk,
      '--kernel',
      findKernel('virtual').vmlinuz,
      '--initrd',
      files.initrd,
      '--write-cache',
      'edge',
    ]),
  )
  const running = [edge]
  try {
    await edge.waitFor(/serving on/, limitMs)
    const words = [program('working-devices'), url, network, String(deviceCount), files.disk]
    const devices = new WatchedProcess({ ...segment.onSwitch(process.execPath, words), endsWithInput: true })
    running.push(devices)
    const { match } = await devices.waitFor(/^boots (.*)\n/m, limitMs)
    const attack = async () => {
      const hostile = [program('hostile-peer'), segment.edgeIp, String(requestCount), match[1], otherEdge]
      const stranger = new WatchedProcess(segment.onDhcp('nice', [...lowest, process.execPath, ...hostile]))
      running.push(stranger)
      const account = await stranger.waitFor(/^account (.*)\n/m, limitMs)
      const { sent } = JSON.parse(account.match[1])
      if (sent < requestCount) throw new UserError(`only ${sent} hostile requests were sent.`)
      await stranger.ended
    }
    let waitsTaken = 0
    const waitsOf = async (load) => {
      await takeWaits(devices, ++waitsTaken)
      await load()
      return takeWaits(devices, ++waitsTaken)
    }
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const quietly = (seconds) => () => new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    const before = quietIsFirst ? await waitsOf(quietly(expectedSeconds)) : undefined
    const attacked = await waitsOf(attack)
    expectedSeconds = attacked.seconds
    const quiet = before ?? (await waitsOf(quietly(attacked.seconds)))
    if (quiet.wrong + attacked.wrong > 0) throw new UserError(`a device lost something: ${devices.output.slice(-2000)}`)
    return { quiet, attacked }
  } finally {
    for (const one of running.toReversed()) await one.stop()
  }
}

/** The priority of the attacker: his own machine would not take the processor from the devices'. */
const lowest = ['-n', '19']
/** Of the former round's attack; a guess in the first. */
let expectedSeconds = 10

async function takeWaits(devices, count) {
  devices.signal('SIGUSR2')
  const { match } = await devices.waitFor(new RegExp(`(?:^waits .*\\n[^]*){${count - 1}}^waits (.*)\\n`, 'm'), limitMs)
  return JSON.parse(match[1])
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

function asMarkdown({ date, command, machine, measured }) {
  const of = (load, field) => median(measured.map((one) => one[load][field]))
  const ratio = of('attacked', 'longestMs') / of('quiet', 'longestMs')
  const row = (name, load) =>
    `| ${name} | ${of(load, 'seconds').toFixed(1)} | ${Math.round(of(load, 'answers') / of(load, 'seconds'))} | ${of(load, 'p99Ms').toFixed(1)} | ${of(load, 'longestMs').toFixed(1)} |`
  return `# Running boots under attack

${deviceCount} devices read and write, each one request after the other, while somebody at another machine of the network sends
${requestCount} requests of 13 kinds as fast as he gets answers: scripts, disks, forged \`failed\` and \`ready\`, DISCOVER and
REQUEST in the devices' names, made-up MAC addresses, forged claims of another edge, replayed HELLOs. The same load for
as long without him. Medians of ${measured.length} rounds; no device ended, and none lost a write.

- ${date}, \`${command}\`
- ${machine.processors} processors (${machine.model}), load ${machine.loadBefore.toFixed(2)} before; devices and edge share them, and the attacker, at the
  lowest priority.

| | s | answers a second | p99 ms | longest wait of one device, ms |
|---|---|---|---|---|
${row('without', 'quiet')}
${row('under attack', 'attacked')}

Goal: the longest wait under attack is at most ${longestGoal} times that without: ${ratio.toFixed(2)}, ${ratio <= longestGoal ? 'reached' : 'missed'}.
`
}
