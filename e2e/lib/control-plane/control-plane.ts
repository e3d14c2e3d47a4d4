import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { testSecretsKey } from '@bootfarm/api/testing/constants'
import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { RunningProcess } from '../lab/running-process.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const database = path.join(root, 'packages/db/src/cli.ts')
const apiMain = path.join(root, 'apps/api/src/main.ts')
const answerLimitMs = 60_000

/** PostgreSQL and the API as separate processes that can be killed; there is no dashboard. */
export class ControlPlane {
  readonly apiUrl: string
  readonly webUrl: string
  readonly databaseUrl: string
  readonly #directory: string
  readonly #apiDatabaseUrl: string
  readonly #secret = randomBytes(24).toString('hex')
  readonly #supervisor: RunningProcess
  readonly #settings: Record<string, string>
  api: RunningProcess
  /** Further APIs on the same database; never killed. */
  readonly otherApis: RunningProcess[] = []
  readonly #otherUrls: string[] = []

  private constructor(
    directory: string,
    apiPort: number,
    supervisor: RunningProcess,
    settings: Record<string, string>,
  ) {
    this.#directory = directory
    this.#settings = settings
    this.#supervisor = supervisor
    this.apiUrl = `http://127.0.0.1:${apiPort}`
    this.webUrl = this.apiUrl
    this.databaseUrl = readFileSync(`${directory}.url`, 'utf8').trim()
    this.#apiDatabaseUrl = readFileSync(`${directory}.api-url`, 'utf8').trim()
    this.api = this.#spawnApi(this.apiUrl)
  }

  /** The URL for the role that the API connects as. */
  get databaseApiUrl(): string {
    return this.#apiDatabaseUrl
  }

  get apiUrls(): string[] {
    return [this.apiUrl, ...this.#otherUrls]
  }

  /**
   * @param prepare fills the database before the API starts; by default it creates the tables
   * @param settings further settings of the API
   */
  static async start(
    folder: string,
    prepare: (urls: { ownerUrl: string; apiUrl: string }) => Promise<void> = migrate,
    settings: Record<string, string> = {},
  ): Promise<ControlPlane> {
    mkdirSync(folder, { recursive: true })
    // The account that PostgreSQL runs as must be able to reach it.
    chmodSync(folder, 0o755)
    const directory = path.join(folder, 'postgres')
    const [pgPort = 0, apiPort = 0] = await freePorts(2)
    const supervisor = new RunningProcess(process.execPath, [
      database,
      'postgres',
      '--dir',
      directory,
      '--port',
      String(pgPort),
    ])
    try {
      await supervisor.waitFor(/"apiUrlFile"/)
      const read = (name: string) => readFileSync(`${directory}.${name}`, 'utf8').trim()
      await prepare({ ownerUrl: read('url'), apiUrl: read('api-url') })
    } catch (error) {
      await supervisor.stop()
      throw error
    }
    const plane = new ControlPlane(directory, apiPort, supervisor, settings)
    await plane.answers().catch(async (error: unknown) => {
      await plane.stop()
      throw error
    })
    return plane
  }

  /** Starts another API process on the same database. @returns its URL */
  async addApi(): Promise<string> {
    const [port = 0] = await freePorts(1)
    const url = `http://127.0.0.1:${port}`
    const api = this.#spawnApi(url)
    this.otherApis.push(api)
    this.#otherUrls.push(url)
    await this.#answersAt(url, api)
    return url
  }

  #spawnApi(url: string): RunningProcess {
    return new RunningProcess(process.execPath, [apiMain], {
      NODE_ENV: 'production',
      LOG_LEVEL: 'warn',
      DATABASE_URL: this.#apiDatabaseUrl,
      API_PORT: new URL(url).port,
      WEB_URL: this.webUrl,
      BETTER_AUTH_SECRET: this.#secret,
      SECRETS_KEY: testSecretsKey,
      ...this.#settings,
    })
  }

  /** Resolves when the API can serve, which needs the database. */
  async answers(): Promise<void> {
    await this.#answersAt(this.apiUrl, this.api)
  }

  async #answersAt(url: string, api: RunningProcess): Promise<void> {
    const deadline = performance.now() + answerLimitMs
    for (;;) {
      const answer = await fetch(`${url}/readyz`).catch(() => null)
      if (answer?.ok) return
      if (!api.isRunning || performance.now() > deadline)
        throw new Error(`the API does not answer:\n${api.output}\n${this.#supervisor.output}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** Kills the API with SIGKILL and starts it again. */
  async killApi(): Promise<void> {
    this.api.kill('SIGKILL')
    await this.api.ended
    this.api = this.#spawnApi(this.apiUrl)
    await this.answers()
  }

  /** Kills the database server with SIGKILL; its supervisor starts it again. */
  async killDatabase(): Promise<void> {
    const killed = this.#databasePid()
    if (killed === null) throw new Error('PostgreSQL does not run')
    process.kill(killed, 'SIGKILL')
    const deadline = performance.now() + answerLimitMs
    // The killed server's file stays until the next one has written its own.
    for (let pid: number | null = killed; pid === null || pid === killed; pid = this.#databasePid()) {
      if (!this.#supervisor.isRunning || performance.now() > deadline)
        throw new Error(`PostgreSQL was not started again:\n${this.#supervisor.output}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await this.answers()
  }

  /** Null while its file is being written. */
  #databasePid(): number | null {
    try {
      return Number(readFileSync(path.join(this.#directory, 'postmaster.pid'), 'utf8').split('\n')[0]) || null
    } catch {
      return null
    }
  }

  async stop(): Promise<void> {
    for (const api of [this.api, ...this.otherApis]) await api.stop()
    // When root runs it, the cluster lies outside the folder, behind a link.
    const cluster = realpathSync(this.#directory)
    await this.#supervisor.stop()
    rmSync(cluster, { recursive: true, force: true })
  }
}

/** Migrates as an operator does. */
export async function migrate({ ownerUrl, apiUrl }: { ownerUrl: string; apiUrl: string }): Promise<void> {
  await runDatabase(['migrate'], { ownerUrl, apiUrl })
}

/** Runs a command of the database program. */
export async function runDatabase(
  args: string[],
  { ownerUrl, apiUrl }: { ownerUrl: string; apiUrl: string },
): Promise<string> {
  const run = new RunningProcess(process.execPath, [database, ...args], {
    DATABASE_OWNER_URL: ownerUrl,
    DATABASE_URL: apiUrl,
  })
  if ((await run.ended) !== 0) throw new Error(run.output)
  return run.output
}
