import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { edgeProgram, inRoot, root, simProgram } from '../lib/paths.mjs'
import { say, step } from '../lib/progress.mjs'
import { must } from '../lib/run.mjs'
import { buildEdge, ensurePackages, ensureZig, turbo } from '../lib/toolchain.mjs'
import { makeDemoFiles } from './demo-files.mjs'
import { releasesIn } from './edge-releases.mjs'
import { LanSite } from './lan-site.mjs'
import { lockDataDirectory } from './lock.mjs'
import { consolesIn, MachineSite } from './machine-site.mjs'
import { answers, requireFreePorts } from './ports.mjs'
import { Processes } from './processes.mjs'

const edgeAddress = '127.0.0.1'
const deviceCount = 6
/** Simulated devices that nobody has registered. */
const strangerCount = 2
const firstStrangerMac = '02:bf:00:00:01:01'
const historyDays = 30
const processNames = [
  'postgres',
  'api',
  'web',
  'edge',
  'devices',
  'strangers',
  ...MachineSite.processNames,
  ...LanSite.processNames,
]

/** Sets up, builds and starts everything; returns when a signal has stopped it in order. */
export async function startProduct(options) {
  // Given to `migrate` alone; what else is started must not inherit it.
  delete process.env.DATABASE_OWNER_URL
  mkdirSync(options.data, { recursive: true, mode: 0o700 })
  await lockDataDirectory(options.data)
  const processes = new Processes(options.data)
  await processes.stopLeftovers(processNames.toReversed())
  await stopLeftoverPostgres(options.data)
  await requireFreePorts(wantedPorts(options))
  const sites = furtherSites(options)
  for (const site of sites) await site.check()

  let stop
  const stopped = new Promise((resolve) => {
    stop = resolve
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal))

  try {
    const starting = (async () => {
      await buildEverything()
      const signIn = await startEverything(options, processes, sites)
      printWelcome(options, signIn, sites)
    })()
    await Promise.race([starting, stopped])
    await stopped
  } finally {
    say('Stopping')
    await processes.stop()
    for (const site of sites) site.remove()
    say('Stopped')
  }
  // A set-up step may still be under way when Ctrl-C comes early; nothing of it may keep this process alive.
  process.exit(process.exitCode ?? 0)
}

/** Sites of the demo beside the one with simulated devices, each with an edge of its own. */
function furtherSites(options) {
  return [...(options.machine ? [new MachineSite(options)] : []), ...(options.lan ? [new LanSite(options)] : [])]
}

function wantedPorts({ webPort, apiPort, pgPort, edgePorts, database }) {
  const edge = (what, port, protocol) => ({
    what: `the edge's ${what}`,
    port,
    protocol,
    option: '--edge-ports',
  })
  return [
    { what: 'the dashboard', port: webPort, protocol: 'tcp', option: '--web-port' },
    { what: 'the API', port: apiPort, protocol: 'tcp', option: '--api-port' },
    ...(database ? [] : [{ what: 'PostgreSQL', port: pgPort, protocol: 'tcp', option: '--pg-port' }]),
    edge('DHCP', edgePorts.dhcp, 'udp'),
    edge('proxyDHCP', edgePorts.pxe, 'udp'),
    edge('TFTP', edgePorts.tftp, 'udp'),
    edge('HTTP boot', edgePorts.http, 'tcp'),
    edge('stream', edgePorts.stream, 'udp'),
    edge('peer port', edgePorts.peer, 'udp'),
    {
      what: "the simulated devices' wake-on-LAN",
      port: edgePorts.wol,
      protocol: 'udp',
      option: '--edge-ports',
    },
  ]
}

/** What is missing is said before anything long begins; then both halves side by side, since the first Zig build keeps one core busy. */
export async function buildEverything() {
  const zig = await ensureZig()
  await ensurePackages()
  await Promise.all([buildEdge(zig), turbo(['build'], 'Building the dashboard')])
}

async function startEverything(options, processes, sites) {
  const { data, apiPort, webPort } = options
  const database = options.database ?? (await startPostgres(options, processes))
  const webUrl = `http://localhost:${webPort}`
  const apiEnv = {
    NODE_ENV: 'production',
    DATABASE_URL: database.url,
    API_PORT: String(apiPort),
    WEB_URL: webUrl,
    BETTER_AUTH_SECRET: secretIn(data),
    BOOTFARM_CONSOLES: consolesIn(data),
    ...releasesIn(data),
  }
  await step('Bringing the database up to date', () =>
    must('Bringing the database up to date', process.execPath, [inRoot('packages/db/src/cli.ts'), 'migrate'], {
      env: { ...apiEnv, DATABASE_OWNER_URL: database.ownerUrl },
      cwd: root,
    }),
  )
  const setUp = await setUpDemo(data, apiEnv, sites)
  await step('Starting the API', () =>
    processes.start({
      name: 'api',
      command: process.execPath,
      args: [inRoot('apps/api/src/main.ts')],
      cwd: root,
      env: apiEnv,
      ready: () => answers(`http://127.0.0.1:${apiPort}/readyz`),
    }),
  )
  await step('Starting the dashboard', () =>
    processes.start({
      name: 'web',
      command: process.execPath,
      args: [inRoot('apps/web/.next/standalone/apps/web/server.js')],
      cwd: root,
      env: {
        NODE_ENV: 'production',
        PORT: String(webPort),
        HOSTNAME: '127.0.0.1',
        API_URL: `http://127.0.0.1:${apiPort}`,
        WEB_URL: webUrl,
      },
      ready: () => answers(`http://127.0.0.1:${webPort}/sign-in`),
    }),
  )
  await startEdge(options, processes, setUp)
  for (const [index, site] of sites.entries()) await site.start(processes, setUp.sites[index].joinToken)
  return JSON.parse(readFileSync(path.join(data, 'demo-sign-in.json'), 'utf8'))
}

/** What the demo has in the database; `sites` are the further ones in their order. */
async function setUpDemo(data, env, sites) {
  const file = path.join(data, 'run/sites.json')
  const described = []
  for (const site of sites) described.push(await site.describe())
  writeFileSync(file, JSON.stringify(described))
  return step('Setting up the demo', async () => {
    const command = [inRoot('apps/api/src/demo/cli.ts'), 'set-up', '--data', data, '--sites', file]
    const output = await must('Setting up the demo', process.execPath, command, { env, cwd: root })
    return JSON.parse(output.trim().split('\n').at(-1))
  })
}

/** A database server outlives its supervisor when that was killed; only then does its pid file name a running process. */
async function stopLeftoverPostgres(data) {
  const directory = path.join(data, 'postgres')
  for (const file of ['postgres.url', 'postgres.api-url']) rmSync(path.join(data, file), { force: true })
  if (!existsSync(path.join(directory, 'postmaster.pid'))) return
  await must(
    'Stopping the database of an earlier start',
    process.execPath,
    [inRoot('packages/db/src/cli.ts'), 'stop', '--dir', directory],
    { cwd: root },
  )
}

async function startPostgres({ data, pgPort }, processes) {
  const directory = path.join(data, 'postgres')
  await step('Starting PostgreSQL', () =>
    processes.start({
      name: 'postgres',
      command: process.execPath,
      args: [inRoot('packages/db/src/cli.ts'), 'postgres', '--dir', directory, '--port', String(pgPort)],
      cwd: root,
      ready: async () => existsSync(path.join(data, 'postgres.url')),
    }),
  )
  const read = (name) => readFileSync(path.join(data, name), 'utf8').trim()
  return { url: read('postgres.api-url'), ownerUrl: read('postgres.url') }
}

async function startEdge({ data, apiPort, edgePorts, waveIntervalSeconds }, processes, setUp) {
  const edgeData = path.join(data, 'edge')
  const trace = inRoot('e2e/traces/boot-trace-bios.csv')
  const { bootFiles, disk } = makeDemoFiles(path.join(edgeData, 'store'), trace)
  if (!existsSync(path.join(edgeData, 'identity.json'))) {
    await step('Enrolling the edge with its join token', () =>
      must('Enrolling the edge', edgeProgram, [
        'enrol',
        '--url',
        `http://127.0.0.1:${apiPort}`,
        '--token',
        setUp.joinToken,
        '--data',
        edgeData,
      ]),
    )
    await step(`Making ${historyDays} days of demo history`, () =>
      must('Making demo history', simProgram, [
        'history',
        '--data',
        edgeData,
        '--days',
        String(historyDays),
        '--seed',
        '1',
      ]),
    )
  }
  await step('Starting the edge', () =>
    processes.start({
      name: 'edge',
      command: edgeProgram,
      args: [
        'serve',
        '--data',
        edgeData,
        '--listen',
        edgeAddress,
        '--boot-files',
        bootFiles,
        '--dhcp',
        'server',
        '--dhcp-pool',
        '127.77.0.10-127.77.0.250',
        '--dhcp-port',
        String(edgePorts.dhcp),
        '--pxe-port',
        String(edgePorts.pxe),
        '--tftp-port',
        String(edgePorts.tftp),
        '--http-port',
        String(edgePorts.http),
        '--stream-port',
        String(edgePorts.stream),
        '--wol-target',
        `${edgeAddress}:${edgePorts.wol}`,
        '--peer-port',
        String(edgePorts.peer),
      ],
      ready: () => answers(`http://${edgeAddress}:${edgePorts.http}/healthz`),
    }),
  )
  await step(`Starting ${deviceCount} simulated devices`, () =>
    processes.start({
      name: 'devices',
      command: simProgram,
      args: [
        'boot',
        '--server',
        edgeAddress,
        '--devices',
        String(deviceCount),
        '--dhcp-port',
        String(edgePorts.dhcp),
        '--tftp-port',
        String(edgePorts.tftp),
        '--trace',
        trace,
        '--verify',
        disk,
        '--wol-port',
        String(edgePorts.wol),
        '--waves',
        '--wave-size',
        '3',
        '--wave-interval-s',
        String(waveIntervalSeconds),
      ],
      ready: async () => true,
    }),
  )
  await step(`Starting ${strangerCount} more that nobody has registered`, () =>
    processes.start({
      name: 'strangers',
      command: simProgram,
      args: [
        'boot',
        '--server',
        edgeAddress,
        '--devices',
        String(strangerCount),
        '--first-mac',
        firstStrangerMac,
        '--dhcp-port',
        String(edgePorts.dhcp),
        '--tftp-port',
        String(edgePorts.tftp),
        '--trace',
        trace,
        '--verify',
        disk,
        '--waves',
        '--wave-size',
        String(strangerCount),
        '--wave-interval-s',
        String(waveIntervalSeconds),
      ],
      ready: async () => true,
    }),
  )
}

function secretIn(data) {
  const file = path.join(data, 'api.secret')
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('base64url'), { mode: 0o600 })
  return readFileSync(file, 'utf8')
}

function printWelcome({ webPort }, signIn, sites) {
  process.stdout.write(`
  Bootfarm is running.

    Dashboard   http://localhost:${webPort}
    Sign in     ${signIn.email}
    Password    ${signIn.password}

  Six simulated devices boot in waves, and two that nobody has registered wait under “Discovered”.${sites.map((site) => `\n  ${site.welcome()}`).join('')}
  Ctrl-C stops everything; the data stays for the next start.

`)
}
