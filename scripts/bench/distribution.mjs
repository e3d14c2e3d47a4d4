import { spawn } from 'node:child_process'
import os from 'node:os'
import { UserError } from '../lib/fail.mjs'
import { cable, Lab } from '../lib/lab/namespaces.mjs'
import { inRoot } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, ensureZig } from '../lib/toolchain.mjs'
import { line, lineMbit, measureDistribution } from './distribution/measure.mjs'
import { keepResult } from './results.mjs'

const packages = [
  { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/tc', '/sbin/tc'], debian: 'iproute2' },
]
const insideName = 'BOOTFARM_BENCH_SITE'
const goal = 1.5
const bootsGoal = 1.1

/**
 * Brings a new version from one site to ten edges of another one, whose line to the control plane is slow, and prints
 * when each has it, what came over the line, and how long boots at these edges took meanwhile.
 * @param {{ rounds: number, write: boolean }} options
 */
export async function benchDistribution({ rounds, write }) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  if (process.env[insideName]) return measureHere(rounds, write)
  await requirePackages('npm run bench -- distribution', packages)
  await buildEdge(await ensureZig())
  const lab = new Lab('line')
  try {
    const [plane, site] = [lab.namespace('p'), lab.namespace('s')]
    cable(
      { namespace: plane, device: line.device, address: `${line.planeIp}/24` },
      { namespace: site, device: line.device, address: `${line.siteIp}/24` },
    )
    for (let number = 1; number <= line.edges; number++) site.address('lo', `${line.edgeIp(number)}/8`)
    // PostgreSQL, the API and the first edge run there: a program cannot be in two networks.
    const args = ['scripts/bench.mjs', 'distribution', '--rounds', String(rounds), ...(write ? ['--write'] : [])]
    const { command, args: all } = plane.command(process.execPath, args)
    const env = { ...process.env, [insideName]: site.name }
    const inside = spawn(command, all, { cwd: inRoot(), env, stdio: 'inherit' })
    const code = await new Promise((resolve) => inside.once('close', resolve))
    if (code !== 0) throw new UserError('the measurement in its own network failed, as is said above.')
  } finally {
    lab.remove()
  }
}

async function measureHere(rounds, write) {
  const loadBefore = os.loadavg()[0]
  const measured = []
  for (let round = 0; round < rounds; round++) {
    const one = await measureDistribution(process.env[insideName])
    measured.push(one)
    say(JSON.stringify(one))
  }
  const result = {
    date: new Date().toISOString(),
    command: `npm run bench -- distribution --rounds ${rounds}`,
    machine: { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length, loadBefore },
    measured,
  }
  const text = asMarkdown(result)
  process.stdout.write(`\n${text}\n`)
  if (write) keepResult('distribution', result, text)
}

function spread(seconds) {
  return `${Math.min(...seconds).toFixed(1)} to ${Math.max(...seconds).toFixed(1)}`
}

const bootsOf = ({ p95, seconds }) => `${p95.toFixed(2)} (${seconds.length} boots)`

const bootsRatio = ({ boots }) => boots.meanwhile.p95 / boots.alone.p95

function asMarkdown({ date, command, machine, measured }) {
  const row = (one, index) => {
    const cells = [
      index + 1,
      (one.differenceBytes / 1e6).toFixed(1),
      one.linkSeconds.toFixed(1),
      (one.fetchedBytes / one.differenceBytes).toFixed(3),
      (one.lineBytes / one.differenceBytes).toFixed(3),
      spread(one.asked),
      spread(one.held),
      (Math.max(...one.held) / one.linkSeconds).toFixed(2),
      bootsOf(one.boots.alone),
      bootsOf(one.boots.meanwhile),
      bootsRatio(one).toFixed(3),
    ]
    return `| ${cells.join(' | ')} |`
  }
  const verdict = (isReached) => (measured.every(isReached) ? 'Reached' : 'Missed')
  // The list of pieces comes, too: 32 bytes for 4 MiB.
  const isOnce = (one) => one.fetchedBytes <= one.differenceBytes * 1.001
  const isQuick = (one) => Math.max(...one.held) <= goal * one.linkSeconds
  return `# A new version for ten edges

${date}, ${machine.processors} processors (${machine.model}), load ${machine.loadBefore.toFixed(2)} before. Command:
\`${command}\`

A disk of 5 GiB with 512 MiB of random bytes, and an update in which 200 MB of random bytes are new. An edge of
one site has made both; the ${line.edges} edges of another site have the first, and get the update over one line of
${lineMbit} Mb/s. Everything runs on this machine: PostgreSQL, the API, ${line.edges + 1} edges and ${line.edges} devices share its processors.
Seconds count from the order of the first fetch. At each of the ${line.edges} edges a device boots the first version again and
again, with a recorded boot's reads and pauses, and compares what it reads: alone, and while the update comes.

| round | difference, MB | the line's time for it, s | got from the control plane / difference | bytes over the line / difference | the edges' fetches were ordered, s | an edge has the version, s | / line's time | p95 of boots alone, s | meanwhile, s | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
${measured.map(row).join('\n')}

- Each byte of the difference enters the site once: **${verdict(isOnce)}.**
- Done in at most ${goal} times the line's time: **${verdict(isQuick)}.**
- The p95 of boots meanwhile is at most ${bootsGoal.toFixed(2)} times that alone: **${verdict((one) => bootsRatio(one) <= bootsGoal)}.**
`
}
