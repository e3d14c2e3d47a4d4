import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { startEmbeddedPostgres } from '../src/embedded-postgres.ts'
import { migrate } from '../src/migrate.ts'

/** A folder that the account PostgreSQL runs as can reach. */
export function makeReachableFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-db-'))
  chmodSync(folder, 0o755)
  return folder
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

export async function startTestPostgres() {
  const folder = makeReachableFolder()
  const server = await startEmbeddedPostgres({
    dir: path.join(folder, 'cluster'),
    port: await freePort(),
    // The run's data is thrown away: nothing needs to reach the disk.
    settings: { fsync: 'off', synchronous_commit: 'off', max_connections: '200' },
  })
  const templateUrl = server.url('bootfarm_template')
  const templateApiUrl = server.apiUrl('bootfarm_template')
  await migrate(templateUrl, { apiUrl: templateApiUrl })
  return {
    server,
    templateUrl,
    templateApiUrl,
    async stop() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
