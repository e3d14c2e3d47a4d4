import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { edgePrograms, inRoot, quickPrograms, root } from '../lib/paths.mjs'
import { say, step } from '../lib/progress.mjs'
import { must } from '../lib/run.mjs'
import { Builds } from './builds.mjs'
import { DemoSite } from './demo-site.mjs'
import { releaseSettings, signReleases } from './edge-releases.mjs'
import { LanSite } from './lan-site.mjs'
import { lockDataDirectory } from './lock.mjs'
import { consolesIn, MachineSite } from './machine-site.mjs'
import { answers, requireFreePorts } from './ports.mjs'
import { Processes } from './processes.mjs'

const processNames = [
  'postgres',
  'api',
  'web',
  ...DemoSite.processNames,
  ...MachineSite.processNames,
  ...LanSite.processNames,
]

/** Sets up, builds and starts everything; returns when a signal has stopped it in order. */
export async function startProduct(options) {
  // Only `migrate` gets it; other processes must not inherit it.
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

  const builds = new Builds(options)
  try {
    const starting = (async () => {
      const signIn = await startEverything(options, processes, sites, builds)
      printWelcome(options, signIn, sites)
      if ((await builds.programs) === quickPrograms) await tellOfRelease(options, builds)
    })()
    await Promise.race([Promise.all([builds.all, starting]), stopped])
    await stopped
  } finally {
    say('Stopping')
    builds.stop()
    await processes.stop()
    for (const site of sites) site.remove()
    say('Stopped')
  }
  // A set-up step may still be running when Ctrl-C comes early; it must not keep this process alive.
  process.exit(process.exitCode ?? 0)
}

/** Sites of the demo beside the one with simulated devices, each with a separate edge. */
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

/** The slug that apps/api/src/demo gives its organization: the emulated machine is the demo's. */
const demoOrganization = 'demo'

/** Starts each part as soon as its requirements are built and running. */
async function startEverything(options, processes, sites, builds) {
  const { data, apiPort, webPort } = options
  await builds.database
  const database = options.database ?? (await startPostgres(options, processes))
  const webUrl = `http://localhost:${webPort}`
  const apiEnv = {
    NODE_ENV: 'production',
    DATABASE_URL: database.url,
    API_PORT: String(apiPort),
    WEB_URL: webUrl,
    BETTER_AUTH_SECRET: secretIn(data),
    BOOTFARM_CONSOLES: consolesIn(data),
    BOOTFARM_UPLOADS: path.join(data, 'uploads'),
    BOOTFARM_OBJECTS: path.join(data, 'objects'),
    BOOTFARM_CONSOLES_ORGANIZATION: process.env.BOOTFARM_CONSOLES_ORGANIZATION || demoOrganization,
    ...releaseSettings(data),
  }
  await step('Migrating the database', () =>
    must('Migrating the database', process.execPath, [inRoot('packages/db/src/cli.ts'), 'migrate'], {
      env: { ...apiEnv, DATABASE_OWNER_URL: database.ownerUrl },
      cwd: root,
    }),
  )
  if (sites.length > 0) await builds.programs
  const setUp = await setUpDemo(data, apiEnv, sites)
  await startApi(apiPort, apiEnv, processes)
  await Promise.all([
    builds.dashboard.then(() => startDashboard({ webPort, apiPort, webUrl }, processes)),
    builds.programs.then((programs) => {
      if (programs === edgePrograms) signReleases(data)
      return new DemoSite(options, programs).start(processes, setUp.joinToken)
    }),
  ])
  for (const [index, site] of sites.entries()) await site.start(processes, setUp.sites[index].joinToken)
  return JSON.parse(readFileSync(path.join(data, 'demo-sign-in.json'), 'utf8'))
}

function startApi(apiPort, env, processes) {
  return step('Starting the API', () =>
    processes.start({
      name: 'api',
      command: process.execPath,
      args: [inRoot('apps/api/src/main.ts')],
      cwd: root,
      env,
      ready: () => answers(`http://127.0.0.1:${apiPort}/readyz`),
    }),
  )
}

function startDashboard({ webPort, apiPort, webUrl }, processes) {
  return step('Starting the dashboard', () =>
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
}

/** Returns the demo's rows in the database; `sites` are the further ones in their order. */
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

/** A database server outlives its supervisor if that was killed; only then does its pid file name a running process. */
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

function secretIn(data) {
  const file = path.join(data, 'api.secret')
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('base64url'), { mode: 0o600 })
  return readFileSync(file, 'utf8')
}

/** Signs the program for new edges once it is built; without it the demo continues. */
async function tellOfRelease({ data }, builds) {
  say('This edge is not optimised. One that is gets built in the background, for the next start and for site servers.')
  try {
    await builds.release
    signReleases(data)
    say('The optimised edge is built.')
  } catch (error) {
    if (!builds.isStopped) say(`The optimised edge cannot be built: ${error.message}`)
  }
}

function printWelcome({ webPort }, signIn, sites) {
  process.stdout.write(`
  Bootfarm is running.

    Dashboard   http://localhost:${webPort}
    Sign in     ${signIn.email}
    Password    ${signIn.password}

  Six simulated devices boot in waves, and two unregistered ones wait under “Discovered”.${sites.map((site) => `\n  ${site.welcome()}`).join('')}
  Ctrl-C stops everything; the data stays for the next start.

`)
}
