import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { webProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'
import { required } from './api-client.ts'

const root = path.join(import.meta.dirname, '../../..')
const at = (file: string) => path.join(root, file)

/**
 * An installation without accounts beside the product under test, with its own database on the same server, API and
 * dashboard.
 */
export class OwnInstallation {
  readonly webUrl: string
  readonly api: RunningProcess
  readonly #web: RunningProcess
  readonly #env: Record<string, string>
  readonly #drop: () => Promise<void>

  private constructor(
    env: Record<string, string> & { WEB_URL: string },
    { api, web, drop }: { api: RunningProcess; web: RunningProcess; drop: () => Promise<void> },
  ) {
    this.webUrl = env.WEB_URL
    this.#env = env
    this.api = api
    this.#web = web
    this.#drop = drop
  }

  /** @param settings further settings of the API, which may depend on the dashboard's URL */
  static async start(settings: (webUrl: string) => Promise<Record<string, string>>): Promise<OwnInstallation> {
    const name = `installation_${randomBytes(4).toString('hex')}`
    const urlOf = (file: string) => {
      const url = new URL(readFileSync(path.join(required('BOOTFARM_DATA'), file), 'utf8').trim())
      return Object.assign(url, { pathname: `/${name}` }).toString()
    }
    await inServer(`create database ${name}`)
    const [webPort, apiPort] = await freePorts(2)
    const webUrl = `http://localhost:${webPort}`
    const env = {
      ...(await settings(webUrl)),
      NODE_ENV: 'production',
      DATABASE_URL: urlOf('postgres.api-url'),
      API_PORT: String(apiPort),
      WEB_URL: webUrl,
      BETTER_AUTH_SECRET: randomBytes(24).toString('hex'),
    }
    const owner = { ...env, DATABASE_OWNER_URL: urlOf('postgres.url') }
    const migration = new RunningProcess(process.execPath, [at('packages/db/src/cli.ts'), 'migrate'], owner)
    if ((await migration.ended) !== 0) throw new Error(migration.output)
    const api = new RunningProcess(process.execPath, [at('apps/api/src/main.ts')], env)
    await api.waitFor(/\/setup\//)
    const web = new RunningProcess(process.execPath, [webProgram], {
      NODE_ENV: 'production',
      PORT: String(webPort),
      HOSTNAME: '127.0.0.1',
      API_URL: `http://127.0.0.1:${apiPort}`,
      WEB_URL: webUrl,
    })
    await web.waitFor(/Ready in/)
    return new OwnInstallation(env, { api, web, drop: () => inServer(`drop database ${name}`) })
  }

  /** Runs the API's command line as the operator does, and returns what it prints. */
  async command(...words: string[]): Promise<{ code: number | string; output: string }> {
    // The browser tests set colours, about which Node would warn.
    const env = { ...this.#env, NODE_NO_WARNINGS: '1' }
    const called = new RunningProcess(process.execPath, [at('apps/api/src/cli.ts'), ...words], env)
    return { code: await called.ended, output: called.output }
  }

  async stop(): Promise<void> {
    await Promise.all([this.api.stop(), this.#web.stop()])
    await this.#drop()
  }
}

async function inServer(statement: string): Promise<void> {
  const db = createDb(readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim())
  try {
    await db.$executeRawUnsafe(statement)
  } finally {
    await db.$disconnect()
  }
}
