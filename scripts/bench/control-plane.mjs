import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { testOrigin, testSecret, testSecretsKey } from '../../apps/api/test/test-constants.ts'
import { startEmbeddedPostgres } from '../../packages/db/src/embedded-postgres.ts'
import { createDb } from '../../packages/db/src/index.ts'
import { freePorts } from '../lib/free-ports.mjs'
import { inRoot } from '../lib/paths.mjs'
import { WatchedProcess } from './watched-process.mjs'

const limitMs = 60_000

/**
 * Runs `work` with a new installation: one API process and its PostgreSQL, which end with it.
 * @template T
 * @param {string} name of the benchmark
 * @param {(place: ControlPlane) => Promise<T>} work
 * @param {{ tree?: string, settings?: Record<string, string> }} options `tree`: another checkout, whose API and
 *   migrations run in place of this one's; `settings`: further ones of the API
 * @returns {Promise<T>}
 * @typedef {{ db: import('@bootfarm/db').Db, url: string, clock: { read(): Date }, ownerUrl: string, apiUrl: string,
 *   pid: number, postgresPid: number }} ControlPlane `pid` is the API's; `db` connects as the owner of the tables, whom
 *   no row-level security binds
 */
export async function withControlPlane(name, work, { tree = inRoot(), settings = {} } = {}) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), `bootfarm-${name}-`))
  chmodSync(scratch, 0o755)
  const [databasePort, apiPort] = await freePorts(2)
  const postgres = await startEmbeddedPostgres({ dir: path.join(scratch, 'cluster'), port: databasePort })
  const ending = []
  try {
    const [ownerUrl, apiUrl] = [postgres.url('bootfarm'), postgres.apiUrl('bootfarm')]
    const { migrate } = await import(path.join(tree, 'packages/db/src/migrate.ts'))
    await migrate(ownerUrl, { apiUrl })
    const api = startApi({ tree, databaseUrl: apiUrl, port: apiPort, settings })
    ending.push(() => api.stop())
    await api.waitFor(/listening/i, limitMs)
    const db = createDb(ownerUrl)
    ending.push(() => db.$disconnect())
    const url = `http://127.0.0.1:${apiPort}`
    return await work({
      db,
      url,
      clock: { read: () => new Date() },
      ownerUrl,
      apiUrl,
      pid: api.pid,
      postgresPid: postgres.pid,
    })
  } finally {
    for (const end of ending.reverse()) await end()
    await postgres.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

function startApi({ tree, databaseUrl, port, settings }) {
  return new WatchedProcess({
    command: process.execPath,
    args: [path.join(tree, 'apps/api/src/main.ts')],
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      API_PORT: String(port),
      WEB_URL: testOrigin,
      BETTER_AUTH_SECRET: testSecret,
      SECRETS_KEY: testSecretsKey,
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      LOG_LEVEL: 'info',
      ...settings,
    },
  })
}
