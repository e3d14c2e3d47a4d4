import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { startEmbeddedPostgres } from '../src/embedded-postgres.ts'
import { migrate } from '../src/migrate.ts'

const memoryFolder = '/dev/shm'
/** Several times what a run's databases and their log take. */
const roomWanted = 2 * 2 ** 30

/** A folder that the account PostgreSQL runs as can reach. */
export function makeReachableFolder(parent = os.tmpdir()): string {
  const folder = mkdtempSync(path.join(parent, 'bootfarm-db-'))
  chmodSync(folder, 0o755)
  return folder
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

/**
 * In memory if there is enough of it: creating and dropping a database touches 700 files each, which costs a disk's
 * file system eight times as much as PostgreSQL's own work. Containers often have 64 MiB there.
 */
function quickestParent(): string {
  if (!existsSync(memoryFolder) || os.freemem() < roomWanted) return os.tmpdir()
  const { bavail, bsize } = statfsSync(memoryFolder)
  return bavail * bsize < roomWanted ? os.tmpdir() : memoryFolder
}

export async function startTestPostgres() {
  const folder = makeReachableFolder(quickestParent())
  const server = await startEmbeddedPostgres({
    dir: path.join(folder, 'cluster'),
    port: await freePort(),
    // The run's data is thrown away: nothing needs to reach the disk.
    settings: {
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_wal_size: '256MB',
      max_connections: '200',
    },
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
